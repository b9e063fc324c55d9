package lab

import (
	"context"
	"crypto/x509"
	"fmt"
	"net/http"
	"strings"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"

	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/assistedrest"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/assistedsim"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/assistedservice"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/hosts"
)

// Backend selects the real or the simulated assisted-service or Bare Metal Operator.
type Backend string

const (
	// Simulated is the simulator, which runs in this process.
	Simulated Backend = "simulated"
	// Real is assisted-service itself; the hosts call its REST API. See [assistedservice.Start]. For the Bare
	// Metal Operator, Real is its controllers, state machine and admission webhooks. They call the simulated
	// machines instead of Ironic: see [env.Options].
	Real Backend = "real"
)

// ParseBackend parses the name of a Backend of a service. Empty means Simulated.
func ParseBackend(service, name string) (Backend, error) {
	switch backend := Backend(name); backend {
	case "":
		return Simulated, nil
	case Simulated, Real:
		return backend, nil
	}
	return "", fmt.Errorf("unknown %s %q: use %s or %s", service, name, Simulated, Real)
}

// startService starts assisted-service with its admission webhooks, and returns its API for hosts.
func (l *Lab) startService(ctx context.Context, options Options) (hosts.Service, error) {
	if err := assistedsim.InstallClusterSets(ctx, l.Client()); err != nil {
		return nil, err
	}
	if options.Backend == Real {
		return l.startReal(ctx, options)
	}
	logger, err := l.log("assisted-service.log")
	if err != nil {
		return nil, err
	}
	service, err := assistedsim.New(l.Env.Config(), assistedsim.Options{
		WorkloadKubeconfig: l.workloadKubeconfig,
		StageDelay:         options.StageDelay,
		Namespaces:         options.Namespaces,
		Flapping:           options.Flapping,
		Auth:               options.Auth,
		HTTPS:              options.HTTPS,
		BeforeDownload:     options.BeforeDownload,
		Logger:             logger,
	})
	if err != nil {
		return nil, err
	}
	if err := service.Start(l.life); err != nil {
		return nil, err
	}
	l.Service = service
	if options.HTTPS {
		l.ca = service.CA()
	}
	return service, service.InstallWebhooks(ctx)
}

// startReal starts the real assisted-service, behind the front.
func (l *Lab) startReal(ctx context.Context, options Options) (hosts.Service, error) {
	logger, err := l.log("assisted-service-rest.log")
	if err != nil {
		return nil, err
	}
	if err := l.startFront(options, logger); err != nil {
		return nil, err
	}
	l.Assisted, err = assistedservice.Start(ctx, l.Env, assistedservice.Options{
		Auth: assistedservice.Auth(options.Auth), BaseURL: l.front.url(), Registries: []string{l.Registry.address},
	})
	if err != nil {
		return nil, err
	}
	if err := l.front.serve(l.Assisted.URL(), l.namespaceOf); err != nil {
		return nil, err
	}
	l.Registry.announce = l.Assisted.SetRelease
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(l.ca)
	l.rest = assistedrest.New(assistedrest.Options{
		URL: l.front.url(), CAs: trusted, Hub: l.Client(), ClusterToken: l.Assisted.ClusterToken, Preparing: l.putKubeconfig, Log: logger,
	})
	return l.rest, nil
}

func (l *Lab) startFront(options Options, logger logr.Logger) error {
	var err error
	if !options.HTTPS {
		l.front, err = startFront(l.life, nil, logger)
		return err
	}
	certificate, err := l.Env.Authority().ServerCertificate()
	if err != nil {
		return err
	}
	l.ca = l.Env.Authority().PEM()
	l.front, err = startFront(l.life, &certificate, logger)
	return err
}

// namespaceOf returns the namespace of an InfraEnv by its ID in the service.
func (l *Lab) namespaceOf(ctx context.Context, id string) (string, error) {
	list := &aiv1beta1.InfraEnvList{}
	if err := l.Client().List(ctx, list); err != nil {
		return "", fmt.Errorf("cannot list InfraEnvs: %w", err)
	}
	for i := range list.Items {
		if strings.Contains(list.Items[i].Status.BootArtifacts.DiscoveryIgnitionURL, id) {
			return list.Items[i].Namespace, nil
		}
	}
	return "", fmt.Errorf("no InfraEnv has id %s", id)
}

// FailDownload serves the discovery ignitions of InfraEnvs in the namespace with handler; nil ends the fault.
// See [assistedsim.Hang] and [assistedsim.Oversize].
func (l *Lab) FailDownload(namespace string, handler http.HandlerFunc) {
	if l.front != nil {
		l.front.fail(namespace, handler)
		return
	}
	l.Service.FailDownload(types.NamespacedName{Namespace: namespace}, handler)
}

// Registered reports whether the real assisted-service knows a cluster, by its ID in the service.
func (l *Lab) Registered(ctx context.Context, clusterID string) (bool, error) {
	return l.rest.Knows(ctx, clusterID)
}

// CA returns the CA (PEM) of assisted-service if it uses HTTPS.
func (l *Lab) CA() []byte { return l.ca }
