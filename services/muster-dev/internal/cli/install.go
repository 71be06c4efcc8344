package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"muster.dev/muster/deploy/install"
	"muster.dev/muster/deploy/rbac"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/internal/client/exit"
	"muster.dev/muster/services/internal/client/program"
)

// installTimeout bounds one request to the API server.
const installTimeout = 15 * time.Second

// installOptions are the flags of "install".
type installOptions struct {
	kubeconfig  string
	clusters    []string
	namespaces  []string
	credentials string
	kueue       bool
	admission   string
	webhookURL  string
	moving      []string
}

func installCommand() *cobra.Command {
	o := &installOptions{}
	cmd := &cobra.Command{
		Use:   "install",
		Short: "Install what Muster's services need into a cluster",
		Long: `Install what Muster's services need into a cluster: the namespace ` + rbac.Namespace + `; the
service accounts of capacity-watcher, dispatcher and intake, which may write only in
the namespaces of queues; the definitions of AppWrappers, unless they are installed;
and the admission rules that suspend labelled Ray objects until they are admitted.
The command needs the rights of an administrator. Repeating it changes nothing.

One capacity-watcher and one dispatcher act for a cluster at a time, under Leases with
the name of the cluster. --cluster makes these, and the services may hold no others.

The rules are admission policies where the API server serves them: it serves mutating
ones from Kubernetes 1.36 on, validating ones from 1.30 on. The others are webhooks,
which intake serves with --webhook-address. The command prints which it has installed;
--admission chooses. It removes the replaced rules last. The API server reaches intake by
the Service muster-intake in the cluster, which it installs, or by --webhook-url.

With --kueue-definitions the command also installs the definitions of the kinds with
which Kueue configures queues, such as ClusterQueue and LocalQueue, so that kubectl
applies Kueue's manifests. It refuses where Kueue, or another such definition, is
installed. intake looks for them when it starts.

With --credentials the command writes a kubeconfig for each service account, for
services that run outside of the cluster: DIR/capacity-watcher/kubeconfig,
DIR/dispatcher/kubeconfig and DIR/intake/kubeconfig.`,
		Example: `  muster-dev install --kubeconfig admin.yaml --cluster east --namespaces research,product
  muster-dev install --kubeconfig admin.yaml --cluster east --credentials ./credentials
  muster-dev install --kubeconfig admin.yaml --cluster east --kueue-definitions`,
		Args: program.Args(0, 0, "no argument"),
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.kubeconfig, "kubeconfig", os.Getenv("KUBECONFIG"), "kubeconfig `file` of an administrator of the cluster (default: $KUBECONFIG)")
	flags.StringSliceVar(&o.clusters, "cluster", nil, "the `name` of the cluster in Muster, as in --cluster of the services; repeat it if several Musters use the cluster")
	flags.StringSliceVar(&o.namespaces, "namespaces", []string{"default"}, "the `namespaces` of queues; missing ones are created")
	flags.StringVar(&o.credentials, "credentials", "", "`directory` for the kubeconfigs of the services")
	flags.StringVar(&o.admission, "admission", string(install.Automatic), "enforce the admission rules by `policies`, webhooks, or auto: policies where the API server serves them")
	flags.StringVar(&o.webhookURL, "webhook-url", "", "`URL` by which the API server reaches the webhooks of an intake outside of the cluster, such as https://10.0.0.7:9443")
	flags.StringSliceVar(&o.moving, "moving-queues", nil, "the `queues` with homeObjects move, whose objects may run in other clusters")
	flags.BoolVar(&o.kueue, "kueue-definitions", false, "install the definitions of Kueue's queues, where Kueue is not installed")
	return cmd
}

func (o *installOptions) run(cmd *cobra.Command) error {
	if o.kubeconfig == "" {
		return exit.Usagef("install: --kubeconfig is missing; want the kubeconfig of an administrator")
	}
	if len(o.clusters) == 0 {
		return exit.Usagef("install: --cluster is missing; want the name of the cluster in Muster")
	}
	if !slices.Contains([]install.Admission{install.Automatic, install.Policies, install.Webhooks}, install.Admission(o.admission)) {
		return exit.Usagef("install: --admission %q: want policies, webhooks or auto", o.admission)
	}
	for _, queue := range o.moving {
		if !workload.ValidName(queue) {
			return exit.Usagef("install: --moving-queues %q: want names of queues", queue)
		}
	}
	if o.webhookURL != "" && !strings.HasPrefix(o.webhookURL, "https://") {
		return exit.Usagef("install: --webhook-url %q: want https://host:port", o.webhookURL)
	}
	admin, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	if err != nil {
		return fmt.Errorf("install: read kubeconfig %q: %w", o.kubeconfig, err)
	}
	admin.Timeout = installTimeout
	if o.kueue { // first, because it may refuse
		if err := install.KueueDefinitions(cmd.Context(), admin); err != nil {
			return fmt.Errorf("install: --kueue-definitions: %w", err)
		}
	}
	chosen, err := install.InstallWith(cmd.Context(), admin, install.Options{
		Clusters: o.clusters, Namespaces: o.namespaces, Admission: install.Admission(o.admission), WebhookURL: o.webhookURL, Moving: o.moving,
	})
	if err != nil {
		return fmt.Errorf("install: %w", err)
	}
	fmt.Fprintf(cmd.OutOrStdout(), "admission rules are enforced by %s\n", chosen)
	if o.credentials == "" {
		return nil
	}
	for service, account := range map[string]string{"capacity-watcher": rbac.CapacityWatcher, "dispatcher": rbac.Dispatcher, "intake": rbac.Intake} {
		if err := o.writeCredentials(cmd, admin, service, account); err != nil {
			return fmt.Errorf("install: %w", err)
		}
	}
	return nil
}

func (o *installOptions) writeCredentials(cmd *cobra.Command, admin *rest.Config, service, account string) error {
	content, err := install.Kubeconfig(cmd.Context(), admin, account)
	if err != nil {
		return err
	}
	dir := filepath.Join(o.credentials, service)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make the directory for the kubeconfig of %s: %w", service, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "kubeconfig"), content, 0o600); err != nil {
		return fmt.Errorf("write the kubeconfig of %s: %w", service, err)
	}
	return nil
}
