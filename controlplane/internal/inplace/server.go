package inplace

import (
	"context"
	"crypto/tls"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/cluster-api/api/runtime/catalog"
	hooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	"sigs.k8s.io/cluster-api/exp/runtime/server"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

const (
	certificate = "tls.crt"
	// certificateInterval is the interval of checks for the certificate. The kubelet adds the file of a Secret
	// that is created after the Pod within one to two minutes.
	certificateInterval = 5 * time.Second
)

// Options of the server.
type Options struct {
	// Enabled is false if the extension is not served.
	Enabled bool
	// Port is the TCP port, on all addresses.
	Port int
	// CertDir contains tls.crt and tls.key. Renewed certificates are loaded.
	CertDir string
}

// AddFlags adds the flags to the set.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	fs.BoolVar(&o.Enabled, "in-place-updates", false,
		"Serve the runtime extension by which Cluster API (feature gates RuntimeSDK and InPlaceUpdates) updates workers in place. "+
			"It also plans upgrades over several minor versions for ClusterClasses that name it.")
	fs.IntVar(&o.Port, "webhook-port", server.DefaultPort, "Port of the runtime extension.")
	fs.StringVar(&o.CertDir, "webhook-cert-dir", "/tmp/k8s-webhook-server/serving-certs",
		"Folder with tls.crt and tls.key of the runtime extension.")
}

// SetupWithManager adds the server to a manager if it is enabled.
func (o Options) SetupWithManager(mgr manager.Manager, workloads Workloads, tlsSettings func(*tls.Config)) error {
	if !o.Enabled {
		return nil
	}
	s, err := newServer(o, tlsSettings, &Extension{Hub: mgr.GetClient(), Workloads: workloads})
	if err != nil {
		return err
	}
	if err := mgr.Add(s); err != nil {
		return fmt.Errorf("cannot add the runtime extension: %w", err)
	}
	return nil
}

// runnable serves the extension in all replicas of the manager. A replica that is not the leader reports a
// failure, which Cluster API retries.
type runnable struct {
	*server.Server
	certDir string
}

func newServer(options Options, tlsSettings func(*tls.Config), extension *Extension) (*runnable, error) {
	hooks := catalog.New()
	if err := hooksv1.AddToCatalog(hooks); err != nil {
		return nil, fmt.Errorf("cannot register the hooks of Cluster API: %w", err)
	}
	s, err := server.New(server.Options{
		Catalog: hooks, Port: options.Port, CertDir: options.CertDir, TLSOpts: []func(*tls.Config){tlsSettings},
	})
	if err != nil {
		return nil, fmt.Errorf("cannot create the server of the runtime extension: %w", err)
	}
	for _, handler := range []server.ExtensionHandler{
		{Hook: hooksv1.CanUpdateMachineSet, Name: "can-update-machineset", HandlerFunc: extension.CanUpdateMachineSet},
		{Hook: hooksv1.UpdateMachine, Name: "update-machine", HandlerFunc: extension.UpdateMachine},
		// ClusterClasses name this handler together with the ExtensionConfig: generate-upgrade-plan.openshift-agent.
		{Hook: hooksv1.GenerateUpgradePlan, Name: "generate-upgrade-plan", HandlerFunc: extension.GenerateUpgradePlan},
	} {
		if err := s.AddExtensionHandler(handler); err != nil {
			return nil, fmt.Errorf("cannot serve hook %s: %w", handler.Name, err)
		}
	}
	return &runnable{Server: s, certDir: options.CertDir}, nil
}

// Start serves until ctx ends, once the certificate exists. Until then Cluster API gets no response, and
// replaces no host. All other controllers of the manager run.
func (s *runnable) Start(ctx context.Context) error {
	file := filepath.Join(s.certDir, certificate)
	log := ctrl.Log.WithName("in-place-updates")
	logged := false
	err := wait.PollUntilContextCancel(ctx, certificateInterval, true, func(context.Context) (bool, error) {
		_, err := os.Stat(file)
		if err != nil && !logged {
			logged = true
			log.Info("Waiting for the certificate of the runtime extension. Apply in-place-updates.yaml", "file", file, "reason",
				err.Error())
		}
		return err == nil, nil
	})
	if err != nil { // the manager stops
		return nil //nolint:nilerr // a regular stop
	}
	if err := s.Server.Start(ctx); err != nil {
		return fmt.Errorf("cannot serve the runtime extension: %w", err)
	}
	return nil
}
