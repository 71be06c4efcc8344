package controlplane

import (
	"context"
	"fmt"
	"net"
	"os"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/client-go/rest"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
)

// APIServer is what the API server needs.
type APIServer struct {
	EtcdURL string
	// ListenerFD is the descriptor of the listening socket. The supervisor opens
	// it, so it knows the address before the API server runs and no other
	// process can take the port between.
	ListenerFD uintptr

	CAFile       string // CAFile verifies client certificates.
	CertFile     string
	KeyFile      string
	TokenKeyFile string // TokenKeyFile signs and verifies service account tokens.
}

// issuer is the issuer of service account tokens.
const issuer = "https://kubernetes.default.svc"

func (a APIServer) flags() []string {
	return []string{
		"--etcd-servers=" + a.EtcdURL,
		"--bind-address=127.0.0.1",
		"--tls-cert-file=" + a.CertFile,
		"--tls-private-key-file=" + a.KeyFile,
		"--client-ca-file=" + a.CAFile,
		"--service-account-issuer=" + issuer,
		"--service-account-key-file=" + a.TokenKeyFile,
		"--service-account-signing-key-file=" + a.TokenKeyFile,
		"--authorization-mode=RBAC",
		"--allow-privileged=true",
		"--service-cluster-ip-range=10.96.0.0/16",
		// Nodes are created Ready, by an administrator; the taint that waits for
		// a kubelet would only cost one more write for each of them.
		"--disable-admission-plugins=TaintNodesByCondition",
		// No simulated pod connects to the service of the API server.
		"--endpoint-reconciler-type=none",
		// One machine, one administrator: nothing to be fair about, and load
		// tests must meet the server's own limits.
		"--enable-priority-and-fairness=false",
		"--max-requests-inflight=0",
		"--max-mutating-requests-inflight=0",
		"--profiling=false",
	}
}

// RunAPIServer runs the API server. It ends with ctx.
func RunAPIServer(ctx context.Context, a APIServer) error {
	file := os.NewFile(a.ListenerFD, "listening socket")
	if file == nil {
		return fmt.Errorf("running the API server: no listening socket at descriptor %d", a.ListenerFD)
	}
	listener, err := net.FileListener(file)
	if err != nil {
		return fmt.Errorf("running the API server: descriptor %d: %w", a.ListenerFD, err)
	}
	file.Close() // FileListener made a copy.

	opts := options.NewServerRunOptions()
	flags := pflag.NewFlagSet("kube-apiserver", pflag.ContinueOnError)
	for _, set := range opts.Flags().FlagSets {
		flags.AddFlagSet(set)
	}
	if err := flags.Parse(a.flags()); err != nil {
		return fmt.Errorf("running the API server: %w", err)
	}
	opts.SecureServing.Listener = listener
	opts.SecureServing.BindPort = listener.Addr().(*net.TCPAddr).Port
	if err := opts.GenericServerRunOptions.ComponentGlobalsRegistry.Set(); err != nil {
		return fmt.Errorf("running the API server: setting its feature gates: %w", err)
	}
	rest.SetDefaultWarningHandler(rest.NoWarnings{})

	completed, err := opts.Complete(ctx)
	if err != nil {
		return fmt.Errorf("running the API server: completing its options: %w", err)
	}
	if faults := completed.Validate(); len(faults) > 0 {
		return fmt.Errorf("running the API server: %w", errors.NewAggregate(faults))
	}
	if err := app.Run(ctx, completed); err != nil {
		return fmt.Errorf("running the API server: %w", err)
	}
	return nil
}
