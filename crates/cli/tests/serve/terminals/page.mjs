// A terminal as a page has it. Arguments: address, key. Prints what came as JSON.
const [url, key] = process.argv.slice(2);
const socket = new WebSocket(url, ['avfs.terminal', `avfs.key.${key}`]);
socket.binaryType = 'arraybuffer';
const said = { text: '', exit_code: undefined };
const shell = 'read line; echo "<$line>"; until stty size | grep 31; do sleep 0.05; done; exit 5';
const type = (text) => socket.send(new TextEncoder().encode(text));
socket.onopen = () => socket.send(JSON.stringify({ shell }));
socket.onmessage = ({ data }) => {
    if (typeof data !== 'string') {
        said.text += new TextDecoder().decode(data);
        if (said.text.includes('<typed>') && !said.resized) {
            said.resized = true;
            socket.send(JSON.stringify({ type: 'resize', rows: 31, columns: 101 }));
        }
        return;
    }
    const message = JSON.parse(data);
    if (message.type === 'started') type('typed\n');
    if (message.type === 'result') said.exit_code = message.envelope.result.exit_code;
};
socket.onclose = ({ code, wasClean }) => {
    console.log(JSON.stringify({ ...said, protocol: socket.protocol, code, clean: wasClean }));
};
