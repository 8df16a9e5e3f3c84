"""What a manifest says of large files beside a bundle. Everything of the model may import it; it imports nothing."""
