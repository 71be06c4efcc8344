// Package compose tests docker-compose.yaml as it is: it brings the local stack
// up, loads it over NATS, and kills its containers.
package compose

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/deploy/certificates"
	"muster.dev/muster/deploy/nats/access"
	"muster.dev/muster/deploy/nats/keys"
	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/test/suite"
)

// root is the top of the repository, from this package's directory.
const root = "../.."

// command is Compose as this machine has it; empty for none.
func command() []string {
	if exec.Command("docker", "version").Run() != nil {
		return nil
	}
	if exec.Command("docker", "compose", "version").Run() == nil {
		return []string{"docker", "compose"}
	}
	if _, err := exec.LookPath("docker-compose"); err == nil {
		return []string{"docker-compose"}
	}
	return nil
}

// stack is the local stack under a project name and with ports of its own.
type stack struct {
	compose []string
	files   []string // on top of docker-compose.yaml
	secrets []string // arguments for the secrets beside their directory
	project string
	env     []string
	dir     string // of the secrets
	access  suite.Access
}

// Name implements suite.Provider.
func (s *stack) Name() string {
	return "containers of docker-compose.yaml, by " + strings.Join(s.compose, " ")
}

// Start implements suite.Provider.
func (s *stack) Start(t *testing.T, _ suite.Shape) suite.Installation {
	t.Helper()
	ports, err := freePorts(4)
	if err != nil {
		t.Fatal(err)
	}
	secrets := filepath.Join(t.TempDir(), "secrets")
	s.dir = secrets
	s.project = "muster-test-" + strconv.Itoa(os.Getpid())
	s.env = append(os.Environ(), "MUSTER_SECRETS="+secrets, "COMPOSE_PROJECT_NAME="+s.project,
		"MUSTER_NATS_PORT="+ports[0], "MUSTER_API_PORT="+ports[1], "TEST_POSTGRES_PORT="+ports[2], "MUSTER_HTTP_PORT="+ports[3])
	ctx := t.Context()
	if _, err := s.run(ctx, "go", slices.Concat([]string{"run", "./deploy/compose"}, s.secrets, []string{secrets})...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.stop(t) })
	if _, err := s.do(ctx, "up", "--detach"); err != nil {
		t.Fatal(err)
	}
	password, err := os.ReadFile(filepath.Join(secrets, "muster_owner-password"))
	if err != nil {
		t.Fatal(err)
	}
	s.access = suite.Access{
		NATSURL: "tls://127.0.0.1:" + ports[0], Credentials: keys.File(secrets, access.Operator),
		TLS: bus.TLS{
			CA: certificates.CA(secrets), Certificate: certificates.Certificate(secrets, "client"), Key: certificates.Key(secrets, "client"),
		},
		DatabaseURL: fmt.Sprintf("postgres://muster_owner:%s@127.0.0.1:%s/muster?sslmode=verify-full&sslrootcert=%s",
			password, ports[2], certificates.CA(secrets)),
		Kubeconfig: s.kubeconfig(t, ports[1]), Cluster: "local", Namespace: "default",
	}
	return s
}

// kubeconfig writes the file of the administrator, or of the user that the arguments
// name, and returns its path.
func (s *stack) kubeconfig(t *testing.T, port string, arguments ...string) string {
	t.Helper()
	config, err := s.do(t.Context(), slices.Concat([]string{"exec", "-T", "devcluster", "devcluster", "kubeconfig"}, arguments)...)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, bytes.ReplaceAll(config, []byte("127.0.0.1:6443"), []byte("127.0.0.1:"+port)), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// port returns the port of this machine that a variable of the stack names.
func (s *stack) port(variable string) string {
	for _, setting := range s.env {
		if name, value, _ := strings.Cut(setting, "="); name == variable {
			return value
		}
	}
	return ""
}

// stop takes the stack down and checks that nothing of it is left.
func (s *stack) stop(t *testing.T) {
	ctx := context.Background()
	if t.Failed() {
		if logs, err := s.do(ctx, "logs", "--tail", "15"); err == nil {
			t.Logf("%s", logs)
		}
	}
	if _, err := s.do(ctx, "down", "--volumes"); err != nil {
		t.Error(err)
	}
	for _, kind := range [][]string{{"ps", "--all"}, {"volume", "ls"}, {"network", "ls"}} {
		arguments := append(kind, "--quiet", "--filter", "label=com.docker.compose.project="+s.project)
		left, err := s.run(ctx, "docker", arguments...)
		if err != nil || len(bytes.TrimSpace(left)) > 0 {
			t.Errorf("after down -v, docker %s still shows %q, %v", strings.Join(kind, " "), left, err)
		}
	}
}

// Access implements suite.Installation.
func (s *stack) Access() suite.Access { return s.access }

// Holder implements suite.Installation: the host name of a container is the
// beginning of its id.
func (s *stack) Holder(part string) string {
	id, err := s.container(context.Background(), part)
	if err != nil {
		return err.Error() // which is the name of no service
	}
	return id[:12]
}

// Break implements suite.Installation; containers here are killed only.
func (s *stack) Break(ctx context.Context, part string, fault suite.Fault) (func(context.Context) error, error) {
	if fault != suite.Killed {
		return nil, fmt.Errorf("a part of the local stack cannot be %s here", fault)
	}
	id, err := s.container(ctx, part)
	if err != nil {
		return nil, err
	}
	_, err = s.run(ctx, "docker", "kill", "--signal=KILL", id)
	return func(ctx context.Context) error {
		_, err := s.run(ctx, "docker", "start", id)
		return err
	}, err
}

// container is the id of a part's container.
func (s *stack) container(ctx context.Context, part string) (string, error) {
	service := part
	if part == suite.NATS(1) {
		service = "nats"
	}
	id, err := s.do(ctx, "ps", "--quiet", service)
	if err == nil && len(bytes.TrimSpace(id)) < 12 {
		err = fmt.Errorf("service %q has no container", service)
	}
	return string(bytes.TrimSpace(id)), err
}

// do runs a command of Compose.
func (s *stack) do(ctx context.Context, arguments ...string) ([]byte, error) {
	full := slices.Clone(s.compose[1:])
	for _, file := range append([]string{"docker-compose.yaml", "test/compose/ports.yaml"}, s.files...) {
		full = append(full, "-f", file)
	}
	return s.run(ctx, s.compose[0], append(full, arguments...)...)
}

// commandTimeout bounds one command; the first start is the longest.
const commandTimeout = 4 * time.Minute

func (s *stack) run(ctx context.Context, name string, arguments ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, arguments...)
	cmd.Dir, cmd.Env = root, s.env
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s %s: %w: %s", name, strings.Join(arguments, " "), err, complaints.String())
	}
	return out.Bytes(), nil
}

func freePorts(count int) ([]string, error) {
	var ports []string
	for range count {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("find a free port: %w", err)
		}
		defer listener.Close()
		ports = append(ports, strconv.Itoa(listener.Addr().(*net.TCPAddr).Port))
	}
	return ports, nil
}
