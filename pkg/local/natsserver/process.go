package natsserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

const (
	// readyPoll is the period of looks at the file of ports during the start.
	readyPoll = 5 * time.Millisecond
	// stopPatience is the time for a shutdown before the server is killed.
	stopPatience = 10 * time.Second
)

// process is a server in a process of its own. It dies with this process.
type process struct {
	cmd    *exec.Cmd
	log    string
	ports  ports
	exited chan struct{}
}

// ports is what nats-server writes once it takes connections.
type ports struct {
	NATS       []string `json:"nats"`
	Monitoring []string `json:"monitoring"`
}

func startProcess(program, dir string, port int) (*process, error) {
	// Not in dir: what a test finds there is what JetStream has put there.
	own, err := os.MkdirTemp("", "nats-server-")
	if err != nil {
		return nil, fmt.Errorf("make a directory for the configuration of nats-server: %w", err)
	}
	p := &process{log: filepath.Join(own, "log"), exited: make(chan struct{})}
	config := filepath.Join(own, "server.conf")
	err = os.WriteFile(config, []byte(configuration(own, port)), 0o600)
	if err == nil {
		// The paths are arguments, for a program that runs the server elsewhere.
		p.cmd = exec.Command(program, "-c", config, "-l", p.log, "--store_dir", dir)
		p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
		err = p.start()
	}
	if err != nil {
		_ = os.RemoveAll(own)
		return nil, fmt.Errorf("start %s: %w", program, err)
	}
	if err := p.awaitPorts(own); err != nil {
		p.Stop()
		return nil, fmt.Errorf("start nats-server on port %d: %w", port, err)
	}
	return p, nil
}

func configuration(own string, port int) string {
	return fmt.Sprintf(`server_name: %s
listen: "%s:%d"
http: "%s:-1"
ports_file_dir: %s
max_payload: %d
jetstream { max_file_store: %d }
`, serverName, host, port, host, strconv.Quote(own), maxPayload, int64(maxStore))
}

// start starts the process. The kernel kills it when the starting thread ends, so that
// thread is kept as long as the process runs.
func (p *process) start() error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			_ = p.cmd.Wait() // how it ended is in its log
			close(p.exited)
		}
	}()
	return <-started
}

// awaitPorts waits for the file of ports, the only one in the directory. Its name has the
// process id, which in a container is another than here.
func (p *process) awaitPorts(own string) error {
	deadline := time.After(startTimeout)
	ticker := time.NewTicker(readyPoll)
	defer ticker.Stop()
	for {
		if p.readPorts(own) {
			return nil
		}
		select {
		case <-ticker.C:
		case <-p.exited:
			return errors.New("it ended: " + p.logTail())
		case <-deadline:
			return fmt.Errorf("no connections within %s: is the port in use? %s", startTimeout, p.logTail())
		}
	}
}

// readPorts reports whether the server has written all of its ports.
func (p *process) readPorts(own string) bool {
	files, _ := filepath.Glob(filepath.Join(own, "*.ports")) // the pattern is well formed
	if len(files) != 1 {
		return false
	}
	content, err := os.ReadFile(files[0])
	return err == nil && json.Unmarshal(content, &p.ports) == nil && len(p.ports.NATS) > 0 && len(p.ports.Monitoring) > 0
}

// logTail returns the end of the server's log.
func (p *process) logTail() string {
	content, err := os.ReadFile(p.log)
	if err != nil {
		return "no log: " + err.Error()
	}
	const most = 2000
	return string(content[max(0, len(content)-most):])
}

func (p *process) URL() string { return p.ports.NATS[0] }

func (p *process) Subscribed(subject string) bool {
	answer, err := http.Get(fmt.Sprintf("%s/subsz?subs=1&limit=%d", p.ports.Monitoring[0], mostSubscriptions))
	if err != nil {
		return false
	}
	defer func() { _ = answer.Body.Close() }()
	var found server.Subsz
	err = json.NewDecoder(answer.Body).Decode(&found)
	return err == nil && slices.ContainsFunc(found.Subs, func(d server.SubDetail) bool { return d.Subject == subject })
}

func (p *process) Stop() {
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGKILL} {
		_ = p.cmd.Process.Signal(signal) // the process may have ended
		select {
		case <-p.exited:
			_ = os.RemoveAll(filepath.Dir(p.log))
			return
		case <-time.After(stopPatience):
		}
	}
}
