package postgres_test

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"muster.dev/muster/pkg/local/postgres"
)

// childVariable makes the test binary start a server and print its URL.
const childVariable = "LOCALPG_TEST_CHILD_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childVariable); dir != "" {
		server, err := postgres.Start(context.Background(), postgres.Options{Dir: dir})
		if err != nil {
			println(err.Error())
			os.Exit(1)
		}
		_, _ = os.Stdout.WriteString(server.URL() + "\n")
		select {} // until the test kills this process
	}
	os.Exit(m.Run())
}

// enterableDir returns a directory that the server's account may enter; t.TempDir may lie
// below one that only this process may enter.
func enterableDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "localpg-test-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func query[T any](t *testing.T, url, statement string) T {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	var result T
	if err := conn.QueryRow(t.Context(), statement).Scan(&result); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	return result
}

func TestServerLife(t *testing.T) {
	t.Parallel()
	dir := enterableDir(t)
	server, err := postgres.Start(t.Context(), postgres.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Stop()

	for setting, want := range map[string]string{"fsync": "on", "synchronous_commit": "on", "TimeZone": "UTC"} {
		if got := query[string](t, server.URL(), "SHOW "+setting); got != want {
			t.Errorf("%s is %q, want %q", setting, got, want)
		}
	}
	first, err := server.CreateDatabase(t.Context(), `of "a" team`, "")
	if err != nil {
		t.Fatal(err)
	}
	query[string](t, first, "WITH made AS (SELECT 1) SELECT current_database() FROM made")
	conn, err := pgx.Connect(t.Context(), first)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), "CREATE TABLE kept (n int); INSERT INTO kept VALUES (7)"); err != nil {
		t.Fatal(err)
	}
	_ = conn.Close(t.Context())
	second, err := server.CreateDatabase(t.Context(), "copy", `of "a" team`)
	if err != nil {
		t.Fatal(err)
	}
	if got := query[int](t, second, "SELECT n FROM kept"); got != 7 {
		t.Errorf("the copy has n = %d, want 7", got)
	}

	held, err := pgx.Connect(t.Context(), second) // an open connection must not hold up the stop
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = held.Close(context.Background()) }()
	server.Stop()
	server.Stop()
	select {
	case <-server.Exited():
	default:
		t.Error("the server runs on after Stop")
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 {
		t.Errorf("after Stop there is left: %q", left)
	}
}

func TestNeedsPassword(t *testing.T) {
	t.Parallel()
	server, err := postgres.Start(t.Context(), postgres.Options{Dir: enterableDir(t), NoFsync: true})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Stop()
	config, err := pgx.ParseConfig(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	config.Password = "guess"
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err == nil {
		_ = conn.Close(t.Context())
		t.Fatal("a wrong password was let in")
	}
	if !strings.Contains(err.Error(), "password") {
		t.Errorf("connecting with a wrong password failed otherwise: %v", err)
	}
}

func TestDiesWithParentAndIsSwept(t *testing.T) {
	t.Parallel()
	dir := enterableDir(t)
	child := exec.Command(os.Args[0], "-test.run=^$")
	child.Env = append(os.Environ(), childVariable+"="+dir)
	output, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	printed := bufio.NewScanner(output)
	if !printed.Scan() {
		_ = child.Wait()
		t.Fatal("the child started no server")
	}
	url := printed.Text()
	query[int](t, url, "SELECT 1")
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait() // it was killed
	awaitRefused(t, url)

	left, _ := filepath.Glob(filepath.Join(dir, "muster-postgres-*"))
	if len(left) != 1 {
		t.Fatalf("want the directory of the killed child, have %q", left)
	}
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(left[0], old, old); err != nil {
		t.Fatal(err)
	}
	server, err := postgres.Start(t.Context(), postgres.Options{Dir: dir, NoFsync: true})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Stop()
	if _, err := os.Stat(left[0]); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the next start left %q of the dead owner: %v", left[0], err)
	}
}

// awaitRefused polls until connections are refused.
func awaitRefused(t *testing.T, url string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		conn, err := pgx.Connect(ctx, url)
		if err != nil && ctx.Err() == nil {
			return
		}
		if err == nil {
			_ = conn.Close(ctx)
		}
		select {
		case <-ctx.Done():
			t.Fatal("the server outlives its parent")
		case <-tick.C:
		}
	}
}

func TestSettingsReachTheServer(t *testing.T) {
	t.Parallel()
	server, err := postgres.Start(t.Context(), postgres.Options{
		Dir: enterableDir(t), NoFsync: true, Settings: map[string]string{"deadlock_timeout": "'123ms'"},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Stop()
	if got := query[string](t, server.URL(), "SHOW deadlock_timeout"); got != "123ms" {
		t.Errorf("deadlock_timeout is %q, want 123ms", got)
	}
}
