// Keeps sound going. A telephone stops it for a call of its own (the state "interrupted"), other systems for other
// reasons, and not each of them starts it again.

export function keepRunning(context) {
  const look = () => {
    if (context.state === "closed") {
      document.removeEventListener("visibilitychange", look);
      document.removeEventListener("pointerdown", look);
    } else if (context.state !== "running") {
      context.resume().catch(() => {}); // not yet: the page's return or the next touch tries again
    }
  };
  context.addEventListener("statechange", look);
  document.addEventListener("visibilitychange", look);
  document.addEventListener("pointerdown", look);
}
