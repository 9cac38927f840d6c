// Starts a recording: the page as ever, with a file in the place of the server.

import { goToAddress } from "./recording/watch.js";
import "./main.js";

await goToAddress();
