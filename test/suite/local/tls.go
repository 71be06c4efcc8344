package local

import (
	"path/filepath"

	"muster.dev/muster/deploy/certificates"
	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/test/suite"
)

// encrypt makes the certificates of NATS servers and of their clients, if they are to
// have some, and returns the servers'.
func (in *installation) encrypt() (*bus.TLS, error) {
	if !in.shape.TLS {
		return nil, nil
	}
	dir := filepath.Join(in.dir, "certificates")
	hosts := []string{"127.0.0.1"}
	for i := range in.shape.NATS {
		hosts = append(hosts, suite.NATS(i+1)+domain)
	}
	if err := certificates.Ensure(dir, certificates.Wanted{Name: "nats", Hosts: hosts}, certificates.Wanted{Name: "client"}); err != nil {
		return nil, err
	}
	files := func(name string) bus.TLS {
		return bus.TLS{CA: certificates.CA(dir), Certificate: certificates.Certificate(dir, name), Key: certificates.Key(dir, name)}
	}
	in.access.TLS = files("client")
	servers := files("nats")
	return &servers, nil
}

// scheme begins the URLs of NATS servers.
func (in *installation) scheme() string {
	if in.shape.TLS {
		return "tls://"
	}
	return "nats://"
}
