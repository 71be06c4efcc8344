package credentials

import (
	"fmt"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Access is the right to use an API server: either a client certificate or
// a bearer token.
type Access struct {
	Cluster string // Cluster names the cluster and the context.
	Server  string
	CA      []byte
	User    string
	Pair    Pair   // Pair is empty when Token is given.
	Token   string // Token is empty when Pair is given.
	// Namespace is the one that clients use without another one.
	Namespace string
}

// Kubeconfig returns a self-contained kubeconfig for the access.
func Kubeconfig(a Access) ([]byte, error) {
	user := clientcmdapi.NewAuthInfo()
	user.ClientCertificateData, user.ClientKeyData, user.Token = a.Pair.Cert, a.Pair.Key, a.Token
	cluster := clientcmdapi.NewCluster()
	cluster.Server, cluster.CertificateAuthorityData = a.Server, a.CA
	context := clientcmdapi.NewContext()
	context.Cluster, context.AuthInfo, context.Namespace = a.Cluster, a.User, a.Namespace

	config := clientcmdapi.NewConfig()
	config.Clusters[a.Cluster] = cluster
	config.AuthInfos[a.User] = user
	config.Contexts[a.Cluster] = context
	config.CurrentContext = a.Cluster
	data, err := clientcmd.Write(*config)
	if err != nil {
		return nil, fmt.Errorf("encoding the kubeconfig of %q: %w", a.User, err)
	}
	return data, nil
}
