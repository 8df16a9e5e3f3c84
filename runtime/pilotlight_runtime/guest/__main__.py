"""`python -I -m pilotlight_runtime.guest`: what a sandbox runs."""

from pilotlight_runtime.guest.guest_process import main

if __name__ == "__main__":
    main()
