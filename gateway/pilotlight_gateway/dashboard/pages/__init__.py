"""The pages, a module each: a plain function from what the API says to blocks, and the page that reads it."""
