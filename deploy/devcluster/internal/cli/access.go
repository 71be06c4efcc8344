package cli

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"

	"muster.dev/muster/deploy/devcluster/internal/credentials"
	"muster.dev/muster/deploy/devcluster/internal/instance"
)

func kubeconfigCommand() *cobra.Command {
	var (
		t        target
		account  string
		duration time.Duration
	)
	cmd := &cobra.Command{
		Use:   "kubeconfig",
		Short: "Print the kubeconfig of the administrator or of a service account",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := t.locate()
			if err != nil {
				return err
			}
			data, err := kubeconfigOf(cmd.Context(), dir, account, duration)
			if err != nil {
				return err
			}
			_, err = cmd.OutOrStdout().Write(data)
			return err
		},
	}
	t.addFlags(cmd)
	cmd.Flags().StringVar(&account, "service-account", "", "NAMESPACE/NAME of the service account to be, by a token that expires")
	cmd.Flags().DurationVar(&duration, "duration", 24*time.Hour, "how long the token of the service account is good")
	return cmd
}

func kubeconfigOf(ctx context.Context, dir instance.Dir, account string, duration time.Duration) ([]byte, error) {
	config, err := adminConfig(dir)
	if err != nil {
		return nil, err
	}
	if account == "" {
		return os.ReadFile(dir.AdminKubeconfig())
	}
	namespace, name, ok := strings.Cut(account, "/")
	if !ok || namespace == "" || name == "" {
		return nil, fmt.Errorf("--service-account %q: must be NAMESPACE/NAME", account)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making the client: %w", err)
	}
	token, err := client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To(int64(duration.Seconds()))},
	}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("requesting a token of the service account %q: %w", account, err)
	}
	return credentials.Kubeconfig(credentials.Access{
		Cluster: "devcluster-" + dir.Name, Server: config.Host, CA: config.CAData,
		User: name, Token: token.Status.Token, Namespace: namespace,
	})
}

// adminConfig returns the administrator's access to a running instance.
func adminConfig(dir instance.Dir) (*rest.Config, error) {
	if _, err := dir.Load(); err != nil {
		return nil, err
	}
	config, err := clientcmd.BuildConfigFromFlags("", dir.AdminKubeconfig())
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig of instance %q: %w", dir.Name, err)
	}
	config.QPS = -1
	return config, nil
}

// client returns a client of the instance's API server, as administrator.
func (t *target) client() (kubernetes.Interface, error) {
	dir, err := t.locate()
	if err != nil {
		return nil, err
	}
	return clientFor(dir)
}

func clientFor(dir instance.Dir) (kubernetes.Interface, error) {
	config, err := adminConfig(dir)
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making the client: %w", err)
	}
	return client, nil
}

func isReady(node *corev1.Node) bool {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
