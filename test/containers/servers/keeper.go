package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"syscall"
)

// natsName is the name of the program that the keeper starts, and the one under which
// this program asks for it.
const natsName = "nats-server"

// request asks the keeper for a server.
type request struct {
	Arguments []string `json:"arguments"`
	Paths     []path   `json:"paths"` // that the server uses
}

// answer is what the keeper says: first whether it has started the server, at its end with
// which code it ended.
type answer struct {
	Unseen  string `json:"unseen,omitempty"`  // a path that is another one in the container
	Failure string `json:"failure,omitempty"` // of the start
	Ended   bool   `json:"ended,omitempty"`
	Code    int    `json:"code,omitempty"`
}

// mostRequest bounds a request, in bytes.
const mostRequest = 64 << 10

// keep serves requests at the socket.
func keep(socket string) error {
	program, err := natsProgram()
	if err != nil {
		return err
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return fmt.Errorf("listen at %s: %w", socket, err)
	}
	fmt.Println(keeperReady)
	return accept(listener, program)
}

// keeperReady is what the keeper prints when it takes requests.
const keeperReady = "keeper: ready"

// natsProgram finds nats-server in its image, where ours has it or the official ones.
func natsProgram() (string, error) {
	if _, err := os.Stat("/" + natsName); err == nil {
		return "/" + natsName, nil
	}
	return exec.LookPath(natsName)
}

// accept serves each connection until the listener is closed.
func accept(listener net.Listener, program string) error {
	for {
		conn, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		go answerOne(conn, program)
	}
}

// answerOne runs one server. It lives no longer than the connection, which ends with the
// program that asked, however that ends.
func answerOne(conn net.Conn, program string) {
	defer func() { _ = conn.Close() }()
	from, to := bufio.NewReader(io.LimitReader(conn, mostRequest)), json.NewEncoder(conn)
	line, err := from.ReadBytes('\n')
	var asked request
	if err == nil {
		err = json.Unmarshal(line, &asked)
	}
	if err != nil {
		_ = to.Encode(answer{Failure: fmt.Sprintf("read the request: %v", err)})
		return
	}
	for _, p := range asked.Paths {
		if !p.same() {
			_ = to.Encode(answer{Unseen: p.Name})
			return
		}
	}
	cmd := exec.Command(program, asked.Arguments...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		_ = to.Encode(answer{Failure: err.Error()})
		return
	}
	if err := to.Encode(answer{}); err != nil { // the program that asked has ended
		_ = cmd.Process.Kill()
	}
	go obey(from, cmd.Process)
	_ = cmd.Wait() // the code says how it ended
	_ = to.Encode(answer{Ended: true, Code: cmd.ProcessState.ExitCode()})
}

// obey sends the server an interrupt for each byte that comes, and kills it at the end.
func obey(from io.Reader, server *os.Process) {
	order := make([]byte, 1)
	for {
		if _, err := io.ReadFull(from, order); err != nil {
			_ = server.Kill() // it may have ended
			return
		}
		_ = server.Signal(syscall.SIGINT) // it may have ended
	}
}
