// Command baremetal-operator is the Bare Metal Operator with its own controllers, state machine and admission webhooks.
// Only the connection to Ironic is replaced, as with its flag -test-mode. In the test mode all hosts share one state,
// so two hosts disturb each other, and no machine reports its state. Here each host has its own state and a machine
// that is queried: see [machines].
//
// The name of the module is below that of the operator, because its controllers and webhooks are internal packages.
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"

	metal3api "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	controllers "github.com/metal3-io/baremetal-operator/internal/controller/metal3.io"
	webhooks "github.com/metal3-io/baremetal-operator/internal/webhooks/metal3.io/v1alpha1"
	"github.com/metal3-io/baremetal-operator/pkg/secretutils"
	ironicv1alpha1 "github.com/metal3-io/ironic-standalone-operator/api/v1alpha1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

// concurrentHosts is how many objects of a kind are worked on at a time: the default follows from the number of processors.
const concurrentHosts = 8

// settings are the flags: those of a manager of the environment, and where the machines are.
type settings struct {
	machines, metrics, health, certificates string
	webhookPort                             int
	elect, insecure                         bool
}

func main() {
	s := settings{}
	flag.StringVar(&s.machines, "machines", "", "URL of what stands for the machines.")
	flag.StringVar(&s.metrics, "diagnostics-address", "0", "Address of the metrics.")
	flag.BoolVar(&s.insecure, "insecure-diagnostics", false, "Serve the metrics over http.")
	flag.StringVar(&s.health, "health-addr", ":9440", "Address of the health endpoint.")
	flag.IntVar(&s.webhookPort, "webhook-port", 9443, "Port of the admission webhooks.")
	flag.StringVar(&s.certificates, "webhook-cert-dir", "", "Folder with the certificate of the admission webhooks.")
	flag.BoolVar(&s.elect, "enable-leader-election", false, "Let one of several lead.")
	flag.BoolVar(&s.elect, "leader-elect", false, "The same.")
	flag.Parse()
	ctrl.SetLogger(zap.New())
	if err := s.run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func (s settings) run() error {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(metal3api.AddToScheme(scheme))
	utilruntime.Must(ironicv1alpha1.AddToScheme(scheme))
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	config.QPS, config.Burst = 20, 30 // as in its own main
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                 scheme,
		Metrics:                metricsserver.Options{BindAddress: s.metrics, SecureServing: !s.insecure},
		WebhookServer:          webhook.NewServer(webhook.Options{Port: s.webhookPort, CertDir: s.certificates}),
		LeaderElection:         s.elect,
		LeaderElectionID:       "baremetal-operator",
		HealthProbeBindAddress: s.health,
		Cache:                  cache.Options{ByObject: secretutils.AddSecretSelector(nil)},
	})
	if err != nil {
		return err
	}
	if err := control(manager, newMachines(strings.TrimSuffix(s.machines, "/"))); err != nil {
		return err
	}
	for _, setUp := range []func(ctrl.Manager) error{
		(&webhooks.BareMetalHost{}).SetupWebhookWithManager,
		(&webhooks.BMCEventSubscription{}).SetupWebhookWithManager,
	} {
		if err := setUp(manager); err != nil {
			return fmt.Errorf("cannot set up an admission webhook: %w", err)
		}
	}
	for name, check := range map[string]healthz.Checker{"ping": healthz.Ping, "webhook": manager.GetWebhookServer().StartedChecker()} {
		if err := manager.AddReadyzCheck(name, check); err != nil {
			return err
		}
	}
	return manager.Start(ctrl.SetupSignalHandler())
}

// control sets up the controllers of the operator.
func control(manager ctrl.Manager, machines *machines) error {
	c, log := manager.GetClient(), ctrl.Log.WithName("controllers")
	hosts := &controllers.BareMetalHostReconciler{
		Client: c, Log: log.WithName("BareMetalHost"), ProvisionerFactory: machines,
		APIReader: manager.GetAPIReader(),
	}
	if err := hosts.SetupWithManager(manager, false, concurrentHosts); err != nil {
		return fmt.Errorf("cannot set up the controller of BareMetalHosts: %w", err)
	}
	claims := &controllers.HostClaimReconciler{Client: c, Scheme: manager.GetScheme()}
	if err := claims.SetupWithManager(manager); err != nil {
		return fmt.Errorf("cannot set up the controller of HostClaims: %w", err)
	}
	for kind, setUp := range map[string]func(ctrl.Manager, int) error{
		"HostFirmwareSettings": (&controllers.HostFirmwareSettingsReconciler{
			Client: c, Log: log.WithName("HostFirmwareSettings"), ProvisionerFactory: machines,
		}).SetupWithManager,
		"HostFirmwareComponents": (&controllers.HostFirmwareComponentsReconciler{
			Client: c, Log: log.WithName("HostFirmwareComponents"), ProvisionerFactory: machines,
		}).SetupWithManager,
		"BMCEventSubscription": (&controllers.BMCEventSubscriptionReconciler{
			Client: c, Log: log.WithName("BMCEventSubscription"), ProvisionerFactory: machines,
		}).SetupWithManager,
		"DataImage": (&controllers.DataImageReconciler{
			Client: c, Log: log.WithName("DataImage"), ProvisionerFactory: machines,
		}).SetupWithManager,
	} {
		if err := setUp(manager, concurrentHosts); err != nil {
			return fmt.Errorf("cannot set up the controller of %s: %w", kind, err)
		}
	}
	return nil
}
