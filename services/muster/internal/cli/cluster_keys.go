package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"muster.dev/muster/deploy/certificates"
	"muster.dev/muster/deploy/nats/access"
	"muster.dev/muster/deploy/nats/keys"
	"muster.dev/muster/deploy/nats/users"
	"muster.dev/muster/services/internal/client/exit"
)

// registryIn reads the registry of a directory with the keys of an installation. A directory
// without accounts is another one: keys that are made there open nothing.
func registryIn(dir string) (users.Registry, error) {
	_, err := os.Stat(filepath.Join(dir, users.AccountsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return users.Registry{}, exit.Usagef("--keys %s: there is no %s; want the directory that `go run ./deploy/compose` keeps", dir, users.AccountsFile)
	}
	if err != nil {
		return users.Registry{}, fmt.Errorf("--keys: %w", err)
	}
	return users.Read(dir)
}

// makeKeys makes the keys of a cluster, once, with that of an intake for the queues to which its
// users submit with kubectl, and prints whether that changed anything. It always writes the
// accounts, so that a call after one that failed mends them.
func makeKeys(out io.Writer, known users.Registry, dir, cluster string, kubectl []string) error {
	file := filepath.Join(dir, users.AccountsFile)
	before, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var intakes []users.Tenant
	if len(kubectl) > 0 {
		intake, err := users.ParseTenant(users.KindIntake, cluster+"="+strings.Join(kubectl, ","))
		if err != nil {
			return err
		}
		intakes = append(intakes, intake)
	}
	known.Add(io.Discard, []string{cluster}, intakes)
	if err := known.Write(); err != nil {
		return err
	}
	after, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if bytes.Equal(before, after) {
		fmt.Fprintf(out, "its keys in %s stay as they are\n", dir)
		return nil
	}
	fmt.Fprintf(out, "its keys are made; reload the NATS servers with %s (nats-server --signal reload)\n", file)
	return nil
}

// removeKeys removes the keys of a cluster. That none are there is no failure.
func removeKeys(out io.Writer, known users.Registry, dir, cluster string) error {
	if !slices.Contains(known.Clusters, cluster) {
		fmt.Fprintf(out, "there are no keys of cluster %s in %s\n", cluster, dir)
		return nil
	}
	if err := known.Remove(out, "cluster="+cluster); err != nil {
		return err
	}
	if err := known.Write(); err != nil {
		return err
	}
	fmt.Fprintf(out, "reload the NATS servers with %s (nats-server --signal reload)\n", filepath.Join(dir, users.AccountsFile))
	return nil
}

// printInstallation prints the commands for an administrator of the cluster, with words in
// the place of what no flag has.
func (o *joinOptions) printInstallation(out io.Writer, name string) {
	dir, address := o.keys, o.address
	var replace []string
	if dir == "" {
		dir = "SECRETS"
		replace = append(replace, "SECRETS by the directory with the keys (--keys)")
	}
	if address == "" {
		address = "ADDRESS"
		replace = append(replace, "ADDRESS by the URL of NATS (--address)")
	}
	file := func(key, path string) string { return "--from-file=" + quoted(key+"="+path) }
	tls, secret := "", ""
	if !strings.HasPrefix(address, "nats://") {
		tls = " --set nats.tlsSecret=muster-nats-tls"
		secret = fmt.Sprintf(`  kubectl --namespace muster-system create secret generic muster-nats-tls \
    %s %s %s
`, file("ca.crt", certificates.Certificate(dir, "ca")), file("tls.crt", certificates.Certificate(dir, "client")), file("tls.key", certificates.Key(dir, "client")))
	}
	kubectl, intake := "", ""
	if len(o.kubectl) > 0 {
		kubectl = " --set kubernetesController.enabled=true --set " + quoted("kubernetesController.queues={"+strings.Join(o.kubectl, ",")+"}")
		intake = " " + file("intake", keys.File(dir, access.MemberIntake(name)))
	}
	fmt.Fprintf(out, `
Install it, with kubectl and helm for that cluster:
  helm install muster deploy/helm/muster --namespace muster-system --create-namespace \
    --set mode=member --set cluster=%s --set %s --set %s%s%s
  kubectl --namespace muster-system create secret generic muster-nats \
    %s %s%s
%s`, name, quoted("namespaces={"+strings.Join(o.namespaces, ",")+"}"), quoted("nats.url="+address), tls, kubectl,
		file("capacity-watcher", keys.File(dir, access.CapacityWatcher(name))), file("dispatcher", keys.File(dir, access.Dispatcher(name))), intake, secret)
	if len(replace) > 0 {
		fmt.Fprintf(out, "Replace %s.\n", strings.Join(replace, ", and "))
	}
}

// quoted returns an argument as a shell reads it.
func quoted(argument string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_=./:@%+", r)
	}
	if strings.IndexFunc(argument, func(r rune) bool { return !plain(r) }) < 0 {
		return argument
	}
	return "'" + strings.ReplaceAll(argument, "'", `'\''`) + "'"
}
