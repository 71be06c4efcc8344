package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/testcontainers/testcontainers-go"
	natsmodule "github.com/testcontainers/testcontainers-go/modules/nats"
	postgresmodule "github.com/testcontainers/testcontainers-go/modules/postgres"
	"github.com/testcontainers/testcontainers-go/wait"

	"muster.dev/muster/pkg/local/postgres"
	"muster.dev/muster/test/containers/docker"
)

const (
	// superuser is the login of the tests, postgresUser the account of the server's
	// process, also in the official image.
	superuser    = "muster"
	postgresUser = "999:999"
	postgresPort = "5432/tcp"
	// postgresData is where both images have the databases.
	postgresData = "/var/lib/postgresql/data"
	// mostConnections is for the tests of several packages at once. Where there is no
	// engine each has a server of 300 connections of its own.
	mostConnections = 1500
	// sharedMemory is more than Docker's 64 MB, for queries in parallel.
	sharedMemory = 256 << 20
)

// startPostgres starts a server with the settings that one of this machine would have, and
// returns the URL of its superuser.
func startPostgres(ctx context.Context, memory bool) (string, removal, error) {
	password := rand.Text()
	options := append(contained(postgresUser, func(h *container.HostConfig) {
		h.ShmSize = sharedMemory
		if memory {
			h.Tmpfs = map[string]string{postgresData: "mode=0700,uid=999,gid=999"}
		}
		h.PortBindings = network.PortMap{network.MustParsePort(postgresPort): {{HostIP: netip.AddrFrom4([4]byte{127, 0, 0, 1})}}}
	}),
		postgresmodule.WithUsername(superuser), postgresmodule.WithPassword(password), postgresmodule.WithDatabase("postgres"),
		testcontainers.WithEnv(map[string]string{"POSTGRES_INITDB_ARGS": "--encoding=UTF8 --locale=C --no-sync"}),
		testcontainers.WithCmd(postgresCommand()...),
		// By TCP: while the database is being made the server answers on its socket only.
		testcontainers.WithWaitStrategy(wait.ForExec([]string{"pg_isready", "--host=127.0.0.1", "--username=" + superuser}).
			WithPollInterval(200*time.Millisecond).WithStartupTimeout(startTimeout)))
	c, err := postgresmodule.Run(ctx, docker.PostgresImage(), options...)
	if c == nil {
		return "", nil, fmt.Errorf("make the tests' Postgres: %w", err)
	}
	if err != nil {
		return "", terminate(c), fmt.Errorf("start the tests' Postgres: %w: %s", err, logOf(ctx, c))
	}
	port, err := c.MappedPort(ctx, postgresPort)
	if err != nil {
		return "", terminate(c), fmt.Errorf("find the port of the tests' Postgres: %w", err)
	}
	return (&url.URL{
		Scheme: "postgres", User: url.UserPassword(superuser, password),
		Host: fmt.Sprintf("127.0.0.1:%d", port.Num()), Path: "/postgres", RawQuery: "sslmode=disable",
	}).String(), terminate(c), nil
}

func postgresCommand() []string {
	settings := postgres.Settings(false)
	settings["max_connections"] = strconv.Itoa(mostConnections)
	command := []string{"postgres"}
	for name, value := range settings {
		command = append(command, "-c", name+"="+value)
	}
	return command
}

// socket is where the keeper listens.
func (s *servers) socket() string { return filepath.Join(s.dir, "keeper") }

// inContainer is the path of this program there.
const inContainer = "/servers"

// startNATS starts the container in which the tests' servers run. They listen on this
// machine's loopback interface and keep their streams in the tests' directories, as they
// do where there is no engine.
func (s *servers) startNATS(ctx context.Context) (removal, error) {
	if err := os.Symlink(s.program, s.asker()); err != nil {
		return nil, fmt.Errorf("give this program the name of nats-server: %w", err)
	}
	options := append(contained(fmt.Sprintf("%d:%d", os.Getuid(), os.Getgid()), func(h *container.HostConfig) {
		h.NetworkMode = "host"
		for _, dir := range temporary(os.TempDir(), os.Getenv("GOTMPDIR")) {
			h.Binds = append(h.Binds, dir+":"+dir)
		}
	}),
		testcontainers.WithFiles(testcontainers.ContainerFile{HostFilePath: s.program, ContainerFilePath: inContainer, FileMode: 0o555}),
		testcontainers.WithEntrypoint(inContainer), testcontainers.WithCmd(keeperName, s.socket()),
		testcontainers.WithWaitStrategy(wait.ForLog(keeperReady).WithStartupTimeout(startTimeout)))
	c, err := natsmodule.Run(ctx, docker.NATSImage(), options...)
	if c == nil {
		return nil, fmt.Errorf("make the container of the tests' NATS servers: %w", err)
	}
	if err != nil {
		return terminate(c), fmt.Errorf("start the container of the tests' NATS servers: %w: %s", err, logOf(ctx, c))
	}
	return terminate(c), nil
}

// temporary are the directories in which tests make theirs: by package os in that for
// temporary files, by package testing in Go's own when that is named.
func temporary(files, gos string) []string {
	if gos == "" || gos == files {
		return []string{files}
	}
	return []string{files, gos}
}

// contained are the options of every container: no rights, and labels by which the next
// run finds what this one leaves.
func contained(user string, more func(*container.HostConfig)) []testcontainers.ContainerCustomizer {
	return []testcontainers.ContainerCustomizer{
		testcontainers.WithLabels(docker.Labels()),
		testcontainers.WithLogger(quiet{}),
		testcontainers.WithConfigModifier(func(c *container.Config) { c.User = user }),
		testcontainers.WithHostConfigModifier(func(h *container.HostConfig) {
			h.CapDrop, h.SecurityOpt = []string{"ALL"}, []string{"no-new-privileges:true"}
			more(h)
		}),
	}
}

// terminate removes a container.
func terminate(c testcontainers.Container) removal {
	return func(ctx context.Context) error {
		return testcontainers.TerminateContainer(c, testcontainers.StopContext(ctx))
	}
}

// mostLog bounds what is shown of a container's log, in bytes.
const mostLog = 4000

// logOf is the beginning of the container's log.
func logOf(ctx context.Context, c testcontainers.Container) string {
	logs, err := c.Logs(context.WithoutCancel(ctx))
	if err != nil {
		return err.Error()
	}
	defer func() { _ = logs.Close() }()
	content, _ := io.ReadAll(io.LimitReader(logs, mostLog)) // what there is
	return string(content)
}

// quiet keeps testcontainers from telling of each step.
type quiet struct{}

// Printf implements log.Logger.
func (quiet) Printf(string, ...any) {}
