package env

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/transport"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/endpoint"
)

// Pass handles a request: transport sends it to the API server at target with the identity of the client.
type Pass func(rw http.ResponseWriter, r *http.Request, transport http.RoundTripper, target *url.URL)

// diversion is a proxy between the API server of a workload cluster and its clients.
type diversion struct {
	*endpoint.Endpoint

	pass   Pass
	target *url.URL
	// admin sends requests with a client certificate, with the identity in the certificate. others sends
	// requests with a token or without credentials.
	admin, others http.RoundTripper
}

// Divert makes all requests to the address and with the kubeconfig of the cluster pass through a handler.
// Address and kubeconfig change, so Divert must be called before any client has them. [WorkloadCluster.Config]
// bypasses the handler. The proxy runs as long as the API server.
func (w *WorkloadCluster) Divert(pass Pass) error {
	served, err := w.api.ca.ServerTLS()
	if err != nil {
		return err
	}
	d := &diversion{pass: pass}
	d.Endpoint = endpoint.New(served, d)
	if d.target, err = url.Parse(w.api.url()); err != nil {
		return fmt.Errorf("cannot use the URL of workload cluster %s: %w", w.Name, err)
	}
	admin := w.Config()
	admin.NextProtos = []string{"http/1.1"} // port-forward needs HTTP/1.1
	if d.admin, err = rest.TransportFor(admin); err != nil {
		return fmt.Errorf("cannot reach workload cluster %s: %w", w.Name, err)
	}
	if d.others, err = rest.TransportFor(rest.AnonymousClientConfig(admin)); err != nil {
		return fmt.Errorf("cannot reach workload cluster %s: %w", w.Name, err)
	}
	d.admin, d.others = versioned{d.admin, &w.kubernetes}, versioned{d.others, &w.kubernetes}
	if w.Port, err = w.env.group.Port(); err != nil {
		return err
	}
	diverted := w.api.admin.DeepCopy()
	for _, cluster := range diverted.Clusters {
		cluster.Server = "https://" + w.address()
	}
	if w.kubeconfig, err = clientcmd.Write(*diverted); err != nil {
		return fmt.Errorf("cannot write the kubeconfig of workload cluster %s: %w", w.Name, err)
	}
	w.diversion = d
	return nil
}

// address returns the address of the API server for clients.
func (w *WorkloadCluster) address() string { return net.JoinHostPort(w.Host, strconv.Itoa(w.Port)) }

// ServeHTTP implements http.Handler.
func (d *diversion) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "" || len(r.TLS.PeerCertificates) == 0 {
		d.pass(rw, r, d.others, d.target)
		return
	}
	who := r.TLS.PeerCertificates[0].Subject
	r.Header.Set(transport.ImpersonateUserHeader, who.CommonName)
	r.Header.Del(transport.ImpersonateGroupHeader)
	for _, group := range who.Organization {
		r.Header.Add(transport.ImpersonateGroupHeader, group)
	}
	d.pass(rw, r, d.admin, d.target)
}
