import { enter, start } from "./live.js";

enter();
addEventListener("hashchange", enter);
start();
