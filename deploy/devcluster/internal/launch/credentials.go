package launch

import (
	"os"

	"k8s.io/apiserver/pkg/authentication/user"

	"muster.dev/muster/deploy/devcluster/internal/credentials"
	"muster.dev/muster/deploy/devcluster/internal/instance"
)

// Files of credentials in an instance's directory.
const (
	caFile       = "ca.crt"
	certFile     = "apiserver.crt"
	keyFile      = "apiserver.key"
	tokenKeyFile = "service-account.key"
)

const adminUser = "devcluster-admin"

// writeCredentials makes the certificates and keys of an instance and the
// kubeconfig of its administrator. hostname, unless empty, is another name of
// the API server.
func writeCredentials(dir instance.Dir, server, hostname string) error {
	authority, err := credentials.NewAuthority()
	if err != nil {
		return err
	}
	names := []string{"127.0.0.1", "localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"}
	if hostname != "" {
		names = append(names, hostname)
	}
	serving, err := authority.Server(names...)
	if err != nil {
		return err
	}
	admin, err := authority.Client(adminUser, user.SystemPrivilegedGroup)
	if err != nil {
		return err
	}
	tokenKey, err := credentials.TokenKey()
	if err != nil {
		return err
	}
	kubeconfig, err := credentials.Kubeconfig(credentials.Access{
		Cluster: "devcluster-" + dir.Name, Server: server, CA: authority.CertPEM(), User: adminUser, Pair: admin,
	})
	if err != nil {
		return err
	}
	files := map[string][]byte{
		dir.File(caFile):       authority.CertPEM(),
		dir.File(certFile):     serving.Cert,
		dir.File(keyFile):      serving.Key,
		dir.File(tokenKeyFile): tokenKey,
		dir.AdminKubeconfig():  kubeconfig,
	}
	for path, data := range files {
		if err := instance.WriteFile(path, data); err != nil {
			return err
		}
	}
	return nil
}

// RemoveKubeconfig removes a copy of the administrator's kubeconfig, unless
// it has changed since.
func RemoveKubeconfig(path string, written []byte) {
	if data, err := os.ReadFile(path); err == nil && string(data) == string(written) {
		os.Remove(path)
	}
}
