package provider

import (
	"errors"
	"fmt"
	"os"

	"github.com/prometheus/common/version"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsregistry "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/apply"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/kube"
)

// ManagerSpec holds the differences between the managers of the two providers.
type ManagerSpec struct {
	// Name of the manager. It is the user agent and the prefix of the lease.
	Name string
	// FieldOwner is the field manager under which the manager applies objects.
	FieldOwner client.FieldOwner
	// Scheme of the objects that the manager handles.
	Scheme *runtime.Scheme
	// Cache holds the cache options of kinds that are not cached as a whole.
	Cache map[client.Object]cache.ByObject
	// DefaultTransform is the cache transform of the kinds that Cache does not list. The default drops only
	// foreign managed fields.
	DefaultTransform toolscache.TransformFunc
	// ListsByField is true for a manager that never lists a namespace of its cache as a whole.
	ListsByField bool
}

// NewManager returns a manager with health checks.
//
// The memory of the manager depends on our clusters, not on the hub. Secrets and ConfigMaps must be watched
// as metadata only (controller-runtime's OnlyMetadata) and are read without the cache. Of managed fields only
// the manager's own are kept.
func (o *Options) NewManager(spec ManagerSpec) (manager.Manager, error) {
	ctrl.SetLogger(klog.Background())
	klog.InfoS(
		"Starting manager",
		"manager",
		spec.Name,
		"version",
		releaseVersion(),
		"revision",
		version.GetRevision(),
		"go",
		version.GoVersion,
	)
	if err := limitMemory(); err != nil {
		return nil, err
	}
	metrics, err := o.Diagnostics.Server()
	if err != nil {
		return nil, err
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return nil, fmt.Errorf("cannot find the API server: %w", err)
	}
	config.QPS, config.Burst = o.QPS, o.Burst
	config.UserAgent = spec.Name
	config.DisableCompression = true // the hub is near, and compression takes the API server longer than the lists themselves
	if err := errors.Join(countRequests(config), registerBuildInfo(metricsregistry.Registry)); err != nil {
		return nil, err
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                        spec.Scheme,
		Metrics:                       metrics,
		HealthProbeBindAddress:        o.HealthAddress,
		LeaderElection:                o.LeaderElect,
		LeaderElectionID:              spec.Name + ".cluster.x-k8s.io",
		LeaderElectionNamespace:       os.Getenv("POD_NAMESPACE"),
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 &o.LeaseDuration,
		RenewDeadline:                 &o.RenewDeadline,
		RetryPeriod:                   &o.RetryPeriod,
		Cache:                         o.cacheOptions(spec),
		Client: client.Options{Cache: &client.CacheOptions{
			DisableFor:   []client.Object{&corev1.Secret{}, &corev1.ConfigMap{}},
			Unstructured: true,
		}},
	})
	if err != nil {
		return nil, fmt.Errorf("cannot set up the manager: %w", err)
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return nil, fmt.Errorf("cannot add the health check: %w", err)
	}
	if err := mgr.AddReadyzCheck("ping", healthz.Ping); err != nil {
		return nil, fmt.Errorf("cannot add the readiness check: %w", err)
	}
	return mgr, o.Diagnostics.Follow(mgr)
}

func (o *Options) cacheOptions(spec ManagerSpec) cache.Options {
	options := cache.Options{
		SyncPeriod:       ptr.To(o.SyncPeriod),
		DefaultTransform: apply.KeepOwn(spec.FieldOwner),
		ByObject:         spec.Cache,
		NewInformer:      kube.NewInformer,
	}
	if spec.ListsByField {
		options.NewInformer = kube.NewInformerByField
	}
	if spec.DefaultTransform != nil {
		options.DefaultTransform = spec.DefaultTransform
	}
	if o.Namespace != "" {
		options.DefaultNamespaces = map[string]cache.Config{o.Namespace: {}}
	}
	return options
}

// Selected reports whether the manager reconciles an object, by its flag --watch-filter.
func (o *Options) Selected(obj client.Object) bool {
	return o.WatchFilter == "" || obj.GetLabels()[clusterv1.WatchLabel] == o.WatchFilter
}
