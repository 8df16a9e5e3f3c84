"""Commands about who one is: logging in and out."""
