package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/moby/moby/client"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"muster.dev/muster/pkg/local/natsserver"
	"muster.dev/muster/test/containers/docker"
)

// Postgres and NATS in containers do what the tests of their packages want of them.
func TestServersInContainers(t *testing.T) {
	if os.Getenv("MUSTER_TEST_PROVIDER") == "local" {
		t.Skip("MUSTER_TEST_PROVIDER=local: nothing is made in an engine")
	}
	engine, err := docker.Connect(t.Context())
	if err != nil {
		t.Skip(err)
	}
	if missing := docker.MissingImages(t.Context(), engine, docker.NATSImage(), docker.PostgresImage()); len(missing) > 0 {
		if os.Getenv("MUSTER_REQUIRE_SERVICES") != "" {
			t.Fatalf("the engine has no images %v: run `make images`", missing)
		}
		t.Skipf("the engine has no images %v: run `make images`", missing)
	}
	dir := t.TempDir()
	s := &servers{dir: dir, program: statically(t), natsServer: "/none", memory: true}
	t.Cleanup(s.stop)
	if err := s.start(context.Background()); err != nil {
		t.Fatal(err)
	}
	t.Setenv(envDatabase, s.database)
	t.Setenv(envSocket, s.socket())
	t.Setenv("MUSTER_NATS_SERVER", s.asker())
	checkPostgres(t, s.database)
	checkNATS(t, engine)
}

// envProgram names this program, which test/run.sh has built.
const envProgram = "MUSTER_TEST_SERVERS"

// statically returns this program linked statically, as a container needs it.
func statically(t *testing.T) string {
	t.Helper()
	if named := os.Getenv(envProgram); named != "" {
		return named
	}
	program := filepath.Join(t.TempDir(), "servers")
	build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-o", program, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the program: %v: %s", err, output)
	}
	return program
}

func checkPostgres(t *testing.T, url string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	for setting, want := range map[string]string{
		"max_connections": "1500", "fsync": "off", "shared_buffers": "64MB", "server_encoding": "UTF8", "lc_collate": "C", "is_superuser": "on",
	} {
		var got string
		if err := conn.QueryRow(t.Context(), "SELECT current_setting($1)", setting).Scan(&got); err != nil || got != want {
			t.Errorf("%s is %q, %v; want %q", setting, got, err, want)
		}
	}
}

// A server runs in the container, and has its streams again when it starts again.
func checkNATS(t *testing.T, engine *client.Client) {
	t.Helper()
	dir := t.TempDir()
	server, err := natsserver.Start(dir, -1)
	if err != nil {
		t.Fatal(err)
	}
	if !runsInContainer(t, engine, dir) {
		t.Errorf("no container of %s has a process with the directory %s", docker.NATSImage(), dir)
	}
	if _, err := stream(t, server).CreateStream(t.Context(), jetstream.StreamConfig{Name: "KEPT"}); err != nil {
		t.Fatal(err)
	}
	server.Stop()
	if runsInContainer(t, engine, dir) {
		t.Error("the server runs after it was stopped")
	}
	if server, err = natsserver.Start(dir, -1); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	if _, err := stream(t, server).Stream(t.Context(), "KEPT"); err != nil {
		t.Errorf("the stream after another start: %v", err)
	}
}

func stream(t *testing.T, server *natsserver.Server) jetstream.JetStream {
	t.Helper()
	nc, err := nats.Connect(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// runsInContainer reports whether a container of NATS has a process with the argument.
func runsInContainer(t *testing.T, engine *client.Client, argument string) bool {
	t.Helper()
	found, err := engine.ContainerList(t.Context(), client.ContainerListOptions{Filters: make(client.Filters).Add("ancestor", docker.NATSImage())})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range found.Items {
		top, err := engine.ContainerTop(t.Context(), c.ID, client.ContainerTopOptions{})
		if err != nil {
			continue // another run's, which has ended
		}
		for _, process := range top.Processes {
			if strings.Contains(strings.Join(process, " "), argument) {
				return true
			}
		}
	}
	return false
}
