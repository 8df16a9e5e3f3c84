"""What a guest needs to know of itself before calls reach it: compile times and files, answers compared."""
