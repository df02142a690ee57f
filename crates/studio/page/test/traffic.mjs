// Bytes over TCP, for the tests of pages that show flows.
//   node test/traffic.mjs serve PORT
//   node test/traffic.mjs take ADDRESS PORT CONNECTIONS
import { connect, createServer } from "node:net";

const [action, ...rest] = process.argv.slice(2);
const block = Buffer.alloc(1 << 16);

/** Sends without end. */
function send(socket) {
  const more = () => { while (socket.write(block)); };
  socket.on("drain", more);
  socket.on("error", () => {});
  more();
}

/** Takes what comes for some seconds, and begins again. */
function take(address, port, place) {
  const socket = connect(port, address);
  socket.on("data", () => {});
  socket.on("error", () => {});
  socket.on("close", () => setTimeout(() => take(address, port, place), 200));
  setTimeout(() => socket.destroy(), 8_000 + 1_000 * place);
}

if (action === "serve") createServer(send).listen(Number(rest[0]));
else for (let place = 0; place < Number(rest[2]); place++) take(rest[0], Number(rest[1]), place);
