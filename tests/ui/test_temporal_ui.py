"""What an operator reads in the Temporal UI, in a real browser."""

import asyncio

from playwright.async_api import Page, expect
from temporalio.client import Client
from tests.ui.browser import PATIENCE_MS, page, workflow_url

from countersign.agent_core.wire import SEARCH_PENDING

expect.set_options(timeout=PATIENCE_MS)

HOSTILE = "![x](http://127.0.0.1:9/x.png)<img/src=http://127.0.0.1:9/y.png>http://127.0.0.1:9/z`**b**"


async def open_tab(browser: Page, ui_url: str, client: Client, workflow_id: str, tab: str) -> None:
    """Open a tab of a workflow's page."""
    description = await client.get_workflow_handle(workflow_id).describe()
    await browser.goto(workflow_url(ui_url, workflow_id, description.run_id, tab))


async def until_attributed(client: Client, workflow_id: str) -> None:
    """Wait until a session has its search attributes: it learns beside its work which ones there are."""
    async with asyncio.timeout(60):
        while True:
            described = await client.get_workflow_handle(workflow_id).describe()
            if SEARCH_PENDING in described.raw_description.workflow_execution_info.search_attributes.indexed_fields:
                break
            await asyncio.sleep(0.1)


async def test_the_session_page_says_what_waits_and_how_to_answer(lab, client, ui_url):
    """The details have the call, the deadline and a bound command; the attributes say that it waits."""
    handle = await lab.start(lab.worker(), "per-call", f"effects={lab.effects_file} effect:a")
    [question] = await handle.wait_for_questions()
    async with page() as browser:
        await open_tab(browser, ui_url, client, handle.id, "user-metadata")
        details = browser.frame_locator("iframe").last.locator("body")
        await expect(details).to_contain_text("Waits for 1 answer")
        await expect(details).to_contain_text("Will run effect with")
        await expect(details).to_contain_text('"label": "a"')
        await expect(details).to_contain_text("open until ")
        await expect(details).to_contain_text(
            f"countersign approve {handle.id} {question.id} --digest {question.digest[:16]}"
        )
        await until_attributed(client, handle.id)
        await open_tab(browser, ui_url, client, handle.id, "search-attributes")
        attributes = browser.get_by_role("main")
        await expect(attributes).to_contain_text('"CountersignStatus": "waiting"')
        await expect(attributes).to_contain_text('"CountersignAgent": "per-call"')
        await expect(attributes).to_contain_text('"CountersignPending": 1')


async def test_what_a_model_wrote_is_shown_and_not_rendered(lab, client, ui_url):
    """Images, HTML, links and emphasis in a tool's input stand in the details as they were written."""
    handle = await lab.start(lab.worker(), "per-call", f"effects={HOSTILE} effect:a")
    await handle.wait_for_questions()
    asked: list[str] = []
    async with page() as browser:
        browser.on("request", lambda request: asked.append(request.url))
        await open_tab(browser, ui_url, client, handle.id, "user-metadata")
        details = browser.frame_locator("iframe").last.locator("body")
        await expect(details).to_contain_text("![x](http://127.0.0.1:9/x.png)")
        await expect(details.locator("img, a, strong")).to_have_count(0)
    assert not [url for url in asked if url.startswith("http://127.0.0.1:9/")]


async def test_the_cycle_page_names_the_tools(lab, client, ui_url):
    """A resumed cycle's summary counts its tools; each call is an activity of the tool's name."""
    handle = await lab.start(lab.worker(), "batch", f"effects={lab.effects_file} effect:a effect:b")
    [question] = await handle.wait_for_questions()
    await handle.answer((question.id, "y"))
    await handle.result()
    cycle = f"{handle.id}/cycle-2"
    async with page(height=1400) as browser:
        await open_tab(browser, ui_url, client, cycle, "user-metadata")
        summary = browser.frame_locator("iframe").first.locator("body")
        await expect(summary).to_contain_text("cycle 2 · effect ×2")
        await open_tab(browser, ui_url, client, cycle, "history")
        scheduled = browser.get_by_role("row").filter(has_text="Activity Task Scheduled")
        await expect(scheduled.filter(has_text="effect").filter(has_text="cycle 2 · call 1")).to_be_visible()
        await expect(scheduled.filter(has_text="effect").filter(has_text="cycle 2 · call 2")).to_be_visible()
