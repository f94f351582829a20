// Search for pages that are opened from a folder: browsers start no worker there, so the worker's
// script runs in a hidden frame instead. The offline plugin would fetch such a script from elsewhere.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      const frame = document.createElement("iframe")
      frame.hidden = true
      this.ready = new Promise((done) => {
        frame.onload = () => {
          const inside = frame.contentWindow
          inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }))
          const script = inside.document.createElement("script")
          script.src = url
          script.onload = () => done(inside)
          inside.document.head.append(script)
        }
      })
      document.body.append(frame)
    }
    async postMessage(data) {
      const inside = await this.ready
      inside.dispatchEvent(new MessageEvent("message", { data }))
    }
  }
}
