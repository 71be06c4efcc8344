package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/testcontainers/testcontainers-go/log"
	"golang.org/x/sync/errgroup"

	"muster.dev/muster/pkg/testkit/tally"
	"muster.dev/muster/test/containers/docker"
)

// startTimeout bounds the start of both containers, stopTimeout their removal.
const (
	startTimeout = 2 * time.Minute
	stopTimeout  = time.Minute
)

// envDatabase names a server of Postgres for tests.
const envDatabase = "MUSTER_TEST_DATABASE_URL"

// serve runs the command beside the containers and returns its exit code.
func serve(ctx context.Context, arguments []string) (int, error) {
	o, err := parse(arguments)
	if err != nil {
		return 2, err
	}
	dir, err := os.MkdirTemp("", "muster-servers-")
	if err != nil {
		return 1, fmt.Errorf("make a directory for the sockets of the tests' servers: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	program, err := os.Executable()
	if err != nil {
		return 1, fmt.Errorf("find this program: %w", err)
	}
	s := &servers{dir: dir, program: program, natsServer: o.natsServer, memory: o.memory, database: os.Getenv(envDatabase)}
	defer s.stop()
	if err := s.start(ctx); err != nil {
		return 1, err
	}
	s.introduce()
	code, err := run(o.command, s.environment())
	return code, errors.Join(err, s.printSummary())
}

// run runs the command. A signal to end is the command's to obey; this process goes on to
// remove the containers.
func run(command, environment []string) (int, error) {
	ends := make(chan os.Signal, 1)
	signal.Notify(ends, syscall.SIGINT, syscall.SIGTERM)
	defer signal.Stop(ends)
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = environment
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		return 1, fmt.Errorf("start %q: %w", command, err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case s := <-ends:
			_ = cmd.Process.Signal(s) // it may have ended
		case err := <-ended:
			var failed *exec.ExitError
			if err != nil && !errors.As(err, &failed) {
				return 1, fmt.Errorf("run %q: %w", command, err)
			}
			if code := cmd.ProcessState.ExitCode(); code >= 0 {
				return code, nil
			}
			return 1, fmt.Errorf("%q ended: %s", command, cmd.ProcessState)
		}
	}
}

// servers are the containers.
type servers struct {
	dir        string // of sockets and notes; the container of NATS sees it
	program    string // this one, linked statically, because the container has no libraries
	natsServer string // of this machine
	memory     bool   // has the databases
	database   string // URL of Postgres
	named      bool   // by the user: no container of Postgres
	remove     []func(context.Context) error
}

// start starts both containers, after those of aborted runs are gone.
func (s *servers) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	engine, err := docker.Connect(ctx)
	if err != nil {
		return err
	}
	removed, err := docker.Sweep(ctx, engine)
	if err != nil {
		return err
	}
	if len(removed) > 0 {
		fmt.Printf("test: removed what an aborted run has left: %s\n", strings.Join(removed, ", "))
	}
	s.named = s.database != ""
	images := []string{docker.NATSImage()}
	if !s.named {
		images = append(images, docker.PostgresImage())
	}
	if missing := docker.MissingImages(ctx, engine, images...); len(missing) > 0 {
		return fmt.Errorf("the Docker engine has no images %v: run `make images`", missing)
	}
	log.SetDefault(quiet{})
	// No container removes what is left over: the next run does, by its labels.
	if err := os.Setenv("TESTCONTAINERS_RYUK_DISABLED", "true"); err != nil {
		return err
	}
	var postgres, nats removal
	var group errgroup.Group
	group.Go(func() (err error) { nats, err = s.startNATS(ctx); return err })
	if !s.named {
		group.Go(func() (err error) { s.database, postgres, err = startPostgres(ctx, s.memory); return err })
	}
	err = group.Wait()
	for _, each := range []removal{postgres, nats} {
		if each != nil {
			s.remove = append(s.remove, each)
		}
	}
	return err
}

// removal removes a container.
type removal = func(context.Context) error

func (s *servers) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	for _, remove := range s.remove {
		if err := remove(ctx); err != nil {
			fmt.Fprintln(os.Stderr, "servers: remove a container:", err)
		}
	}
}

// tallyFile is where tests note the servers that they use.
func (s *servers) tallyFile() string { return filepath.Join(s.dir, "tally") }

// asker is this program under the name by which it asks the keeper.
func (s *servers) asker() string { return filepath.Join(s.dir, natsName) }

// environment is that of the command.
func (s *servers) environment() []string {
	return append(os.Environ(), envDatabase+"="+s.database, "MUSTER_NATS_SERVER="+s.asker(), envSocket+"="+s.socket(),
		envHere+"="+s.natsServer, tally.EnvFile+"="+s.tallyFile())
}

// printSummary prints which servers the tests have noted.
func (s *servers) printSummary() error {
	file, err := os.Open(s.tallyFile())
	if errors.Is(err, os.ErrNotExist) {
		return nil // no test has used one
	}
	if err != nil {
		return fmt.Errorf("read which servers the tests have used: %w", err)
	}
	defer func() { _ = file.Close() }()
	notes, err := tally.Read(file)
	if err != nil {
		return err
	}
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	for _, line := range summary(root, notes) {
		fmt.Println("test: " + line)
	}
	return nil
}

// introduce prints what the tests use.
func (s *servers) introduce() {
	where := "in a container of " + docker.PostgresImage()
	if s.named {
		where = "that " + envDatabase + " names"
	}
	fmt.Println("test: Postgres: each test has a database on one server, " + where)
	fmt.Println("test: NATS: each test has a server of its own, in a container of " + docker.NATSImage())
}
