"""`python -I -m pilotlight_runtime.egress`: the proxy of one agent."""

from pilotlight_runtime.egress.proxy_process import main

if __name__ == "__main__":
    main()
