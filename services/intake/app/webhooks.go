package app

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"regexp"
	"strings"
	"time"

	"go.uber.org/zap"
	"k8s.io/client-go/kubernetes"

	"muster.dev/muster/deploy/policy"
	"muster.dev/muster/deploy/rbac"
	"muster.dev/muster/pkg/service"
	"muster.dev/muster/pkg/service/inflight"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/intake/internal/policywebhook"
	"muster.dev/muster/services/intake/internal/webhookcert"
)

// WebhookConfig is the settings of the webhooks that stand for the admission policies where
// the API server serves none.
type WebhookConfig struct {
	// Address is host:port to listen on.
	Address string
	// Hosts are the names and addresses by which the API server calls, separated by commas.
	Hosts string
	// Secret is namespace/name of the Secret with the certificates.
	Secret string
	// Configuration is the name of the webhook configurations of either kind.
	Configuration string
	// Dispatcher is the dispatcher's account, and Operators, separated by commas, those of
	// KubeRay operators without cluster-wide rights.
	Dispatcher, Operators string
	// Moving are the queues whose objects move, separated by commas.
	Moving string
	// IgnoreKueueLabel leaves Kueue's queue label to Kueue.
	IgnoreKueueLabel bool
	// ClientCAFile is the authority of the client certificates that are required.
	ClientCAFile string
	// Listening, unless nil, is called with the address once it is bound.
	Listening func(net.Addr)

	clients *x509.CertPool
}

func (c *WebhookConfig) register(flags *flag.FlagSet) {
	flags.StringVar(&c.Address, "webhook-address", "", "`host:port` of the webhooks that stand for the admission policies, for the API server; empty turns them off")
	flags.StringVar(&c.Hosts, "webhook-hosts", "", "`names` and addresses by which the API server calls the webhooks, separated by commas (default: those of the Service "+rbac.WebhookService+" in "+rbac.Namespace+")")
	flags.StringVar(&c.Secret, "webhook-secret", rbac.Namespace+"/"+rbac.WebhookSecret, "`namespace/name` of the Secret with the certificates of the webhooks")
	flags.StringVar(&c.Configuration, "webhook-configuration", rbac.WebhookConfiguration, "`name` of the webhook configurations in which the certificates are published")
	flags.StringVar(&c.Dispatcher, "webhook-dispatcher", "", "`account` of the dispatcher (default: system:serviceaccount:"+rbac.Namespace+":"+rbac.Dispatcher+")")
	flags.StringVar(&c.Moving, "webhook-moving-queues", "", "`queues` with homeObjects move, separated by commas")
	flags.StringVar(&c.Operators, "webhook-operators", "", "`accounts` of KubeRay operators without cluster-wide rights, separated by commas")
	flags.BoolVar(&c.IgnoreKueueLabel, "webhook-ignore-kueue-label", false, "leave Kueue's queue label to Kueue, where it is installed")
	flags.StringVar(&c.ClientCAFile, "webhook-client-ca", "", "PEM `file` with the authority of the client certificate that the API server must present; without it callers are not authenticated")
}

// account matches the name of a user of Kubernetes as policies have it.
var account = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9:._@/-]{0,252}$`)

// validate reads the file that the settings name.
func (c *WebhookConfig) validate(cluster string) error {
	if c.Address == "" {
		return nil
	}
	c.Hosts = cmp.Or(c.Hosts, fmt.Sprintf("%[1]s.%[2]s.svc,%[1]s.%[2]s.svc.cluster.local", rbac.WebhookService, rbac.Namespace))
	c.Secret = cmp.Or(c.Secret, rbac.Namespace+"/"+rbac.WebhookSecret)
	c.Configuration = cmp.Or(c.Configuration, rbac.WebhookConfiguration)
	var faults []error
	if cluster == "" {
		faults = append(faults, errors.New("cluster: is missing; the webhooks are part of the Kubernetes controller"))
	}
	if _, _, err := net.SplitHostPort(c.Address); err != nil {
		faults = append(faults, fmt.Errorf("webhook-address: %q: want host:port: %w", c.Address, err))
	}
	if namespace, name, ok := strings.Cut(c.Secret, "/"); !ok || namespace == "" || name == "" {
		faults = append(faults, fmt.Errorf("webhook-secret: %q: want namespace/name", c.Secret))
	}
	for _, name := range append(split(c.Operators), split(c.Dispatcher)...) {
		if !account.MatchString(name) {
			faults = append(faults, fmt.Errorf("webhook-operators and webhook-dispatcher: %q: want an account, such as system:serviceaccount:ray:kuberay-operator", name))
		}
	}
	for _, queue := range split(c.Moving) {
		if !workload.ValidName(queue) {
			faults = append(faults, fmt.Errorf("webhook-moving-queues: %q: want names of queues", queue))
		}
	}
	if c.ClientCAFile != "" {
		content, err := os.ReadFile(c.ClientCAFile)
		if err != nil {
			faults = append(faults, fmt.Errorf("webhook-client-ca: %w", err))
		} else if c.clients = x509.NewCertPool(); !c.clients.AppendCertsFromPEM(content) {
			faults = append(faults, fmt.Errorf("webhook-client-ca: %s: has no PEM certificate", c.ClientCAFile))
		}
	}
	return errors.Join(faults...)
}

// split parts a list at its commas; an empty text has no elements.
func split(list string) []string {
	if list == "" {
		return nil
	}
	return strings.Split(list, ",")
}

// webhookConnections bounds the connections of one client address.
const webhookConnections = 64

// serveWebhooks compiles the policies, makes the certificates, and serves until stop.
func serveWebhooks(ctx context.Context, config WebhookConfig, client kubernetes.Interface, runtime *service.Runtime) (stop func(), err error) {
	settings := policy.Settings{KueueLabel: !config.IgnoreKueueLabel, Operators: split(config.Operators), Dispatcher: config.Dispatcher, Moving: split(config.Moving)}
	policies, err := policywebhook.Compile(settings.Documents())
	if err != nil {
		return nil, err
	}
	namespace, name, _ := strings.Cut(config.Secret, "/")
	keeper := &webhookcert.Keeper{
		Client: client, Namespace: namespace, Secret: name, Configuration: config.Configuration,
		Hosts: split(config.Hosts), Logger: runtime.Logger,
	}
	err = service.Patiently(ctx, runtime.Logger, "make the certificates of the webhooks", anyError, func() error { return keeper.Look(ctx, time.Now()) })
	if err != nil {
		return nil, err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", config.Address)
	if err != nil {
		return nil, fmt.Errorf("listen for the webhooks on %s: %w", config.Address, err)
	}
	if config.Listening != nil {
		config.Listening(listener.Addr())
	}
	secured := &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: keeper.Certificate, NextProtos: []string{"http/1.1"}}
	if config.clients != nil {
		secured.ClientCAs, secured.ClientAuth = config.clients, tls.RequireAndVerifyClientCert
	}
	limits := policywebhook.DefaultLimits()
	server := &http.Server{
		Handler: &policywebhook.Handler{
			Policies: policies, Authorizer: policywebhook.NewAuthorizer(client.AuthorizationV1()), Limits: limits, Logger: runtime.Logger,
		},
		ReadHeaderTimeout: limits.Time, ReadTimeout: 2 * limits.Time, WriteTimeout: 3 * limits.Time, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 16 << 10, ErrorLog: service.HTTPErrorLog(runtime.Logger),
	}
	ctx, cancel := context.WithCancel(ctx)
	go func() { _ = keeper.Run(ctx) }() // ends with the context alone
	go func() {
		served := tls.NewListener(inflight.Listen(listener, webhookConnections), secured)
		if err := server.Serve(served); !errors.Is(err, http.ErrServerClosed) {
			runtime.Logger.Error("webhooks ended", zap.Error(err))
		}
	}()
	runtime.Logger.Info("serving the admission policies as webhooks", zap.String("address", listener.Addr().String()))
	return func() { cancel(); shutDown(server) }, nil
}

// shutDown lets reviews that have begun end.
func shutDown(server *http.Server) {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	if server.Shutdown(ctx) != nil {
		_ = server.Close()
	}
}
