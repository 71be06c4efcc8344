package install

import (
	"context"
	"fmt"
	"os"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"muster.dev/muster/deploy/rbac"
)

// tokenLife is the requested lifetime; an API server may grant less. A local stack that
// runs longer must restart.
const tokenLife = 30 * 24 * time.Hour

// Kubeconfig returns a kubeconfig with a new token of one of Muster's service accounts.
func Kubeconfig(ctx context.Context, admin *rest.Config, serviceAccount string) ([]byte, error) {
	client, err := kubernetes.NewForConfig(admin)
	if err != nil {
		return nil, fmt.Errorf("client for %s: %w", admin.Host, err)
	}
	seconds := int64(tokenLife / time.Second)
	token, err := client.CoreV1().ServiceAccounts(rbac.Namespace).CreateToken(ctx, serviceAccount,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}},
		metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("token for service account %s/%s: %w", rbac.Namespace, serviceAccount, err)
	}
	cluster, err := clusterOf(admin)
	if err != nil {
		return nil, err
	}
	encoded, err := clientcmd.Write(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"cluster": cluster},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{serviceAccount: {Token: token.Status.Token}},
		Contexts:       map[string]*clientcmdapi.Context{"muster": {Cluster: "cluster", AuthInfo: serviceAccount}},
		CurrentContext: "muster",
	})
	if err != nil {
		return nil, fmt.Errorf("encode kubeconfig of %s: %w", serviceAccount, err)
	}
	return encoded, nil
}

// clusterOf returns the address of the API server, without credentials.
func clusterOf(admin *rest.Config) (*clientcmdapi.Cluster, error) {
	authority := admin.CAData
	if len(authority) == 0 && admin.CAFile != "" {
		var err error
		if authority, err = os.ReadFile(admin.CAFile); err != nil {
			return nil, fmt.Errorf("certificate authority of %s: %w", admin.Host, err)
		}
	}
	return &clientcmdapi.Cluster{
		Server: admin.Host + admin.APIPath, TLSServerName: admin.ServerName,
		InsecureSkipTLSVerify: admin.Insecure, CertificateAuthorityData: authority,
	}, nil
}
