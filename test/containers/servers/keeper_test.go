package main

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"muster.dev/muster/pkg/testkit/tally"
)

// patience bounds the wait for what must happen.
const patience = 30 * time.Second

// fakeName is the name under which this program is a server: it says in the file that its
// first argument names that it runs, and how it ended.
const fakeName = "fake-server"

func TestMain(m *testing.M) {
	switch filepath.Base(os.Args[0]) {
	case natsName:
		os.Exit(ask(os.Args[1:]))
	case fakeName:
		os.Exit(fakeServer(os.Args[1]))
	}
	os.Exit(m.Run())
}

// fakeServer runs until an interrupt.
func fakeServer(pipe string) int {
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, syscall.SIGINT)
	printed, err := os.OpenFile(pipe, os.O_WRONLY, 0)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Fprintln(printed, "runs")
	<-interrupted
	fmt.Fprintln(printed, "interrupted")
	return 0
}

// under makes this program available under a name.
func under(t *testing.T, name string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), name)
	if err := os.Symlink(self, program); err != nil {
		t.Fatal(err)
	}
	return program
}

// startKeeper serves requests for a program, as in a container that sees every file, and
// returns the socket.
func startKeeper(t *testing.T, program string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "keeper-") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- accept(listener, program) }()
	t.Cleanup(func() {
		_ = listener.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return socket
}

// script makes a program of a line of shell.
func script(t *testing.T, line string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"+line+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestTheServerGetsItsArgumentsAndItsCodeComesBack(t *testing.T) {
	t.Parallel()
	printed := filepath.Join(t.TempDir(), "said")
	socket := startKeeper(t, script(t, `echo "$@" >`+printed+`; exit 7`))
	code, unseen, err := askKeeper(socket, []string{"-c", printed, "two words"})
	if code != 7 || unseen != "" || err != nil {
		t.Errorf("it ended with %d, %q, %v; want 7", code, unseen, err)
	}
	if content, err := os.ReadFile(printed); err != nil || string(content) != "-c "+printed+" two words\n" {
		t.Errorf("it was given %q, %v", content, err)
	}
}

func TestWhatDoesNotStartIsReported(t *testing.T) {
	t.Parallel()
	_, _, err := askKeeper(startKeeper(t, "/none/such"), nil)
	if err == nil || !strings.Contains(err.Error(), "/none/such") {
		t.Errorf("the error is %v", err)
	}
	if _, _, err := askKeeper("/none/such/socket", nil); err == nil || !strings.Contains(err.Error(), "/none/such/socket") {
		t.Errorf("without a keeper the error is %v", err)
	}
}

// What is no request is answered with why, and starts nothing.
func TestWhatIsNoRequestIsRefused(t *testing.T) {
	t.Parallel()
	socket := startKeeper(t, "/none/such")
	for name, line := range map[string]string{
		"no JSON": "start it\n", "no end": strings.Repeat(" ", mostRequest+1),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn, err := net.Dial("unix", socket)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close() }()
			if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
				t.Fatal(err)
			}
			go func() { _, _ = conn.Write([]byte(line)) }() // what is too much is not read
			var a answer
			if err := json.NewDecoder(conn).Decode(&a); err != nil || !strings.Contains(a.Failure, "read the request") {
				t.Errorf("the answer is %+v, %v", a, err)
			}
		})
	}
}

// A signal to the program that asks reaches the server as an interrupt; when that program
// is killed, so is the server.
func TestTheServerEndsWithWhoAskedForIt(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		signal syscall.Signal
		want   string
	}{
		"interrupt": {syscall.SIGINT, "interrupted\n"},
		"terminate": {syscall.SIGTERM, "interrupted\n"},
		"kill":      {syscall.SIGKILL, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pipe := filepath.Join(t.TempDir(), "pipe")
			if err := syscall.Mkfifo(pipe, 0o600); err != nil {
				t.Fatal(err)
			}
			asker := exec.Command(under(t, natsName), pipe)
			asker.Env = append(os.Environ(), envSocket+"="+startKeeper(t, under(t, fakeName)), tally.EnvFile+"=")
			asker.Stderr = os.Stderr
			if err := asker.Start(); err != nil {
				t.Fatal(err)
			}
			server, err := os.OpenFile(pipe, os.O_RDONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = server.Close() }()
			if printed := hear(t, server); printed != "runs\n" {
				t.Fatalf("the server says %q", printed)
			}
			if err := asker.Process.Signal(test.signal); err != nil {
				t.Fatal(err)
			}
			if err := asker.Wait(); (err == nil) != (test.want != "") {
				t.Errorf("the program that asked ended with %v", err)
			}
			if printed := hear(t, server); printed != test.want {
				t.Errorf("the server says %q at its end, want %q", printed, test.want)
			}
		})
	}
}

// hear reads what the server reports next, nothing when it has ended.
func hear(t *testing.T, server *os.File) string {
	t.Helper()
	heard := make(chan string, 1)
	go func() {
		printed := make([]byte, 64)
		n, _ := server.Read(printed) // an error is the end
		heard <- string(printed[:n])
	}()
	select {
	case printed := <-heard:
		return printed
	case <-time.After(patience):
		t.Fatalf("the server neither says anything nor ends within %s", patience)
		return ""
	}
}

// A server runs on this machine when one of its files is another in the container; where
// each ran is noted.
func TestAServerRunsWhereItsFilesAre(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	self, err := identify(dir)
	if err != nil {
		t.Fatal(err)
	}
	other := path{Name: dir, Device: self.Device, Inode: self.Inode + 1}
	for name, test := range map[string]struct {
		path path
		same bool
	}{
		"the same directory":                     {self, true},
		"another under its name":                 {other, false},
		"on another file system, of that number": {path{dir, self.Device + 1, self.Inode}, false},
		"not there":                              {path{dir + "/none", self.Device, self.Inode}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if test.path.same() != test.same {
				t.Errorf("%+v is the same: %t, want %t", test.path, !test.same, test.same)
			}
		})
	}
}

// A server that the container cannot serve becomes the process that asked for it.
func TestAnUnseenServerRunsHere(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	listener, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	go func() {
		conn, err := listener.Accept()
		if err == nil {
			_ = json.NewEncoder(conn).Encode(answer{Unseen: dir})
		}
	}()
	notes := filepath.Join(dir, "notes")
	asker := exec.Command(under(t, natsName), "-c", dir)
	asker.Env = append(os.Environ(), envSocket+"="+listener.Addr().String(), envHere+"="+script(t, `echo "$@" $$; exit 5`), tally.EnvFile+"="+notes)
	printed, err := asker.Output()
	if asker.ProcessState.ExitCode() != 5 || string(printed) != fmt.Sprintf("-c %s %d\n", dir, asker.Process.Pid) {
		t.Errorf("it ended with %v and said %q", err, printed)
	}
	if noted, err := os.ReadFile(notes); err != nil || !strings.HasPrefix(string(noted), "nats\town\t") {
		t.Errorf("noted is %q, %v", noted, err)
	}
}
