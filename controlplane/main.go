// The manager of the Agent Control Plane provider.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	configv1 "github.com/openshift/api/config/v1"
	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/autoscaling"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/cluster"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/clusterversion"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/controlplane"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/dns"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/etcd"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/informer"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/inplace"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/kubelets"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/internal/writer"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/measure"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/provider"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/release"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/versions"
)

const managerName = "openshift-agent-control-plane"

// Permissions for kinds without namespace, also for a manager that watches one namespace. The labels of
// CustomResourceDefinitions contain the versions that serve the contract of Cluster API. Each installation
// has a ClusterImageSet:
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=get;list;watch
// +kubebuilder:rbac:groups=hive.openshift.io,resources=clusterimagesets,verbs=get;list;watch;create;patch;delete
//
// On OpenShift hubs the servers of the manager follow the TLS profile in APIServer cluster:
// +kubebuilder:rbac:groups=config.openshift.io,resources=apiservers,resourceNames=cluster,verbs=get;list;watch
//
// managedclustersets/join exists only for the webhook of Open Cluster Management (ACM, MCE). It denies a
// ClusterDeployment to users who may not add a cluster to any set. Sets have no namespace:
// +kubebuilder:rbac:groups=cluster.open-cluster-management.io,resources=managedclustersets/join,verbs=create

func main() {
	if err := run(ctrl.SetupSignalHandler(), os.Args[1:]); err != nil && !errors.Is(err, provider.ErrPrinted) {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// settings are the flags of the manager.
type settings struct {
	provider.Options

	updates      inplace.Options
	repositories versions.Repositories
}

// AddFlags adds the flags to the set.
func (o *settings) AddFlags(fs *pflag.FlagSet) {
	o.Options.AddFlags(fs)
	o.updates.AddFlags(fs)
	fs.StringVar(&o.repositories.OCP, "ocp-release-repository", versions.DefaultOCPRepository,
		"Repository of the release images of OpenShift, for hubs with a mirror.")
	fs.StringVar(&o.repositories.OKD, "okd-release-repository", versions.DefaultOKDRepository,
		"Repository of the release images of OKD, for hubs with a mirror.")
}

func run(ctx context.Context, args []string) error {
	options := &settings{}
	flags := pflag.NewFlagSet(managerName, pflag.ContinueOnError)
	options.AddFlags(flags)
	if err := options.Parse(flags, args, os.Stdout); err != nil {
		return err
	}
	scheme, err := newScheme()
	if err != nil {
		return err
	}
	mgr, err := options.NewManager(provider.ManagerSpec{
		Name: managerName, FieldOwner: writer.FieldOwner, Scheme: scheme, Cache: informer.Cached(),
		DefaultTransform: informer.TrimInfra, ListsByField: true,
	})
	if err != nil {
		return err
	}
	if err := options.addControllers(ctx, mgr); err != nil {
		return err
	}
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("the manager failed: %w", err)
	}
	return nil
}

// releases returns the resolver of release images, whose queries are measured.
func (o *settings) releases() *release.Resolver {
	resolver := release.NewResolver(release.NewTransport(o.repositories.Registries()...), clock.RealClock{})
	resolver.Observer = release.Observer{Request: measure.RegistryRequest, Lookup: measure.ReleaseLookup}
	return resolver
}

// addControllers adds all controllers to the manager.
func (o *settings) addControllers(ctx context.Context, mgr manager.Manager) error {
	clusters := cluster.NewClusters(cluster.Options{
		Cached:    mgr.GetCache(), // the client would not cache Secrets
		Live:      mgr.GetAPIReader(),
		UserAgent: managerName,
		Selected:  controlplane.ClustersOf(mgr.GetClient(), o.Selected),
		Installed: controlplane.InstalledBy(mgr.GetClient()),
		Requests:  controlplane.RequestsOf(mgr.GetClient()),
	})
	if err := clusters.SetupWithManager(mgr, o.ControllerOptions()); err != nil {
		return err
	}
	reconciler := controlplane.New(controlplane.Options{
		Client:       mgr.GetClient(),
		Metadata:     mgr.GetCache(),
		Live:         mgr.GetAPIReader(),
		Releases:     o.releases(),
		Repositories: o.repositories,
		Names:        dns.NewResolver(clock.RealClock{}),
		Workloads:    clusters,
		Etcds:        etcd.New(clusters),
		Kubelets:     kubelets.New(clusters),
		Versions:     clusterversion.New(clusters),
		Recorder:     mgr.GetEventRecorderFor(managerName), //nolint:staticcheck // the newer events need other fields and rights
		Selected:     o.Selected,
	})
	if err := reconciler.SetupWithManager(ctx, mgr, o.ControllerOptions(), clusters); err != nil {
		return err
	}
	capacities := autoscaling.New(autoscaling.Options{
		Client:   mgr.GetClient(),
		Recorder: mgr.GetEventRecorderFor(managerName), //nolint:staticcheck // as above
		Selected: o.Selected,
		Clock:    clock.RealClock{},
	})
	if err := capacities.SetupWithManager(mgr, o.ControllerOptions()); err != nil {
		return err
	}
	tlsSettings, err := o.Diagnostics.TLS()
	if err != nil {
		return err
	}
	return o.updates.SetupWithManager(mgr, clusters, tlsSettings)
}

func newScheme() (*runtime.Scheme, error) {
	kinds := runtime.NewSchemeBuilder(
		clientgoscheme.AddToScheme, clusterv1.AddToScheme, bootstrapv1.AddToScheme, controlplanev1.AddToScheme,
		hivev1.AddToScheme, hiveext.AddToScheme, aiv1beta1.AddToScheme, configv1.Install, metal3.AddToScheme,
	)
	scheme := runtime.NewScheme()
	return scheme, kinds.AddToScheme(scheme)
}
