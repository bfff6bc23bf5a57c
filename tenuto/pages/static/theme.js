// Before the first paint, so that nothing flashes: the theme that was chosen, and that there is a script.
try {
  document.documentElement.classList.remove("plain");
  const theme = localStorage.getItem("tenuto-theme");
  if (theme === "dark" || theme === "light") document.documentElement.dataset.theme = theme;
} catch { /* no storage: the preference of the system counts */ }
