// Search runs in a worker, and browsers give none to pages that are opened from the disk: there an
// invisible frame does its work, under the name by which the theme's worker looks for one.
if (location.protocol === "file:") {
  window.Worker = window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      this.inner = frame.contentWindow;
      this.inner.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      this.inner.importScripts = (...urls) =>
        urls.reduce((before, one) => before.then(() => this.load(one)), Promise.resolve());
      this.loaded = this.load(url);
    }

    load(url) {
      const script = this.inner.document.createElement("script");
      script.src = url;
      this.inner.document.body.append(script);
      return new Promise((done) => (script.onload = done));
    }

    postMessage(data) {
      this.loaded.then(() => this.inner.dispatchEvent(new MessageEvent("message", { data })));
    }
  };
}
