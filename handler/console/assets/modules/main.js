// What is the same on all pages. Without it, pages show and do the same, but stay as they are.
import { watch } from "./live.js";
import { keys } from "./keys.js";
import { palette } from "./palette.js";
import { offerCopies } from "./copy.js";
import { views } from "./views.js";
import { showTimes, startTimes } from "./times.js";

const enhance = (root) => {
  showTimes(root);
  offerCopies(root);
};

watch(enhance); // before times are written otherwise: it compares what the server has sent
startTimes();
offerCopies(document);
keys();
views();
palette();
document.getElementById("choices").hidden = false;
