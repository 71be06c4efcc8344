package stack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// envKubectl is the environment variable that names the kubectl to use.
const envKubectl = "MUSTER_KUBECTL"

// ErrNoKubectl is wrapped when kubectl is not to be found.
var ErrNoKubectl = errors.New("kubectl is not built: run `make build`")

// Kubectl runs kubectl as administrator in the stack's namespace and returns what
// it prints, on both streams.
func (s *Stack) Kubectl(ctx context.Context, input string, arguments ...string) (string, error) {
	binary, err := s.kubectl()
	if err != nil {
		return "", err
	}
	arguments = append([]string{
		"--kubeconfig", s.options.Cluster.Kubeconfig, "--namespace", s.Namespace, "--cache-dir", filepath.Join(s.options.Dir, "kubectl"),
	}, arguments...)
	command := exec.CommandContext(ctx, binary, arguments...)
	command.Stdin = strings.NewReader(input)
	output, err := command.CombinedOutput()
	if err != nil {
		return string(output), fmt.Errorf("kubectl %q: %w: %s", arguments, err, output)
	}
	return string(output), nil
}

func (s *Stack) kubectl() (string, error) {
	if binary := os.Getenv(envKubectl); binary != "" {
		return binary, nil
	}
	cluster := os.Getenv("MUSTER_DEVCLUSTER")
	if cluster == "" {
		cluster = filepath.Join("..", "..", "bin", "devcluster")
	}
	binary := filepath.Join(filepath.Dir(cluster), "kubectl")
	if _, err := os.Stat(binary); err != nil {
		return "", fmt.Errorf("%w: %w", ErrNoKubectl, err)
	}
	return binary, nil
}
