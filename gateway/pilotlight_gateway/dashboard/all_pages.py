"""Every page and every action, in the order of the navigation. A new page is a module in `pages/` and a line here."""

from __future__ import annotations

from pilotlight_gateway.dashboard.page_parts.page import Page, PageAction
from pilotlight_gateway.dashboard.pages.breakers_page import BREAKERS_PAGE
from pilotlight_gateway.dashboard.pages.decisions_page import DECISIONS_PAGE
from pilotlight_gateway.dashboard.pages.fleet_page import FLEET_PAGE
from pilotlight_gateway.dashboard.pages.function_page import FUNCTION_PAGE
from pilotlight_gateway.dashboard.pages.functions_page import FUNCTIONS_PAGE
from pilotlight_gateway.dashboard.pages.incidents_page import INCIDENTS_PAGE
from pilotlight_gateway.dashboard.pages.money_page import MONEY_PAGE
from pilotlight_gateway.dashboard.pages.nodes_page import NODE_ACTIONS, NODE_PAGE, NODES_PAGE
from pilotlight_gateway.dashboard.pages.overview_page import OVERVIEW_PAGE
from pilotlight_gateway.dashboard.pages.own.batches_page import BATCHES_PAGE
from pilotlight_gateway.dashboard.pages.own.call_page import CALL_PAGE
from pilotlight_gateway.dashboard.pages.own.calls_page import CALLS_PAGE
from pilotlight_gateway.dashboard.pages.own.events_page import EVENTS_PAGE
from pilotlight_gateway.dashboard.pages.own.jobs_page import JOBS_PAGE
from pilotlight_gateway.dashboard.pages.own.keys_page import KEYS_PAGE
from pilotlight_gateway.dashboard.pages.own.logs_page import LOGS_PAGE
from pilotlight_gateway.dashboard.pages.own.rollout_page import ROLLOUT_ACTIONS, ROLLOUT_PAGE
from pilotlight_gateway.dashboard.pages.own.rollouts_page import ROLLOUTS_PAGE
from pilotlight_gateway.dashboard.pages.own.schedules_page import SCHEDULES_PAGE
from pilotlight_gateway.dashboard.pages.own.spending_page import SPENDING_PAGE
from pilotlight_gateway.dashboard.pages.own.webhooks_page import WEBHOOKS_PAGE
from pilotlight_gateway.dashboard.pages.platform_rollouts_page import PLATFORM_ROLLOUTS_PAGE
from pilotlight_gateway.dashboard.pages.queues_page import QUEUES_PAGE
from pilotlight_gateway.dashboard.pages.slowdowns_page import SLOWDOWNS_PAGE
from pilotlight_gateway.dashboard.pages.starts_page import STARTS_PAGE
from pilotlight_gateway.dashboard.pages.tenants_page import TENANTS_PAGE

PAGES: tuple[Page, ...] = (
    # of the viewer's own tenant
    FUNCTIONS_PAGE,
    FUNCTION_PAGE,
    CALLS_PAGE,
    CALL_PAGE,
    LOGS_PAGE,
    JOBS_PAGE,
    BATCHES_PAGE,
    SCHEDULES_PAGE,
    ROLLOUTS_PAGE,
    ROLLOUT_PAGE,
    EVENTS_PAGE,
    SPENDING_PAGE,
    KEYS_PAGE,
    WEBHOOKS_PAGE,
    # of the whole platform
    OVERVIEW_PAGE,
    FLEET_PAGE,
    NODES_PAGE,
    NODE_PAGE,
    QUEUES_PAGE,
    SLOWDOWNS_PAGE,
    BREAKERS_PAGE,
    STARTS_PAGE,
    PLATFORM_ROLLOUTS_PAGE,
    DECISIONS_PAGE,
    INCIDENTS_PAGE,
    TENANTS_PAGE,
    MONEY_PAGE,
)
ACTIONS: tuple[PageAction, ...] = (*ROLLOUT_ACTIONS, *NODE_ACTIONS)
