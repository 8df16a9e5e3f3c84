// One stream for all tabs of this browser (a shared worker): a host gives few connections, and each tab would take one.
// A tab says which page it shows; the stream is opened anew with the pages of all tabs, and a change goes to those it is of.
const tabs = new Map(); // port -> its topic
let source, opened = "", retry;

function open() {
  const topics = [...new Set(tabs.values())].sort();
  const wanted = topics.join("\n");
  if (wanted === opened && source && source.readyState !== EventSource.CLOSED) return;
  source?.close();
  source = undefined;
  opened = wanted;
  if (!topics.length) return;
  const query = topics.map((topic) => `page=${encodeURIComponent(topic)}`).join("&");
  source = new EventSource(`/ui/events?${query}`);
  source.addEventListener("open", () => tell(() => true, { live: true }));
  source.addEventListener("page", (event) => {
    const told = JSON.parse(event.data);
    tell((topic) => topic === told.topic, told);
  });
  source.addEventListener("error", () => {
    // A refusal ends the stream for good, where a broken connection is opened anew by itself.
    const refused = source?.readyState === EventSource.CLOSED;
    tell(() => true, { live: false, refused });
    if (refused) {
      clearTimeout(retry);
      retry = setTimeout(() => { opened = ""; open(); }, 5000);
    }
  });
}

function tell(of, message) {
  for (const [port, topic] of tabs) if (of(topic)) port.postMessage(message);
}

onconnect = (event) => {
  const port = event.ports[0];
  port.onmessage = ({ data }) => {
    if (data.topic) tabs.set(port, data.topic);
    else tabs.delete(port);
    opened = data.topic ? "" : opened; // a new tab needs a snapshot
    open();
  };
};
