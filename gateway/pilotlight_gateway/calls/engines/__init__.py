"""What a gateway says of calls to engines. Imports no other module of calls."""
