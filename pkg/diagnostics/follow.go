package diagnostics

import (
	"context"
	"crypto/tls"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// detectionInterval is the time until the next attempt to find out whether the hub is an OpenShift cluster, after a failure.
const detectionInterval = time.Minute

// apiServers is the kind of the one object, cluster, by which OpenShift configures TLS.
var (
	apiServers    = schema.GroupVersionKind{Group: "config.openshift.io", Version: "v1", Kind: "APIServer"}
	apiServerName = fields.OneTermEqualSelector("metadata.name", "cluster")
)

// follower follows the TLS profile of an OpenShift hub. On other hubs it ends at once.
type follower struct {
	mapper meta.RESTMapper
	client client.WithWatch
	log    logr.Logger
	// followed is nil while the flags apply.
	followed *atomic.Pointer[settings]
}

// Follow makes the servers of a manager follow the TLS profile of an OpenShift hub, unless a flag sets their TLS.
func (o *Options) Follow(mgr manager.Manager) error {
	if o.chosen() {
		return nil
	}
	c, err := client.NewWithWatch(mgr.GetConfig(), client.Options{HTTPClient: mgr.GetHTTPClient(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return fmt.Errorf("cannot create the client for the TLS profile of the hub: %w", err)
	}
	if err := mgr.Add(&follower{mapper: mgr.GetRESTMapper(), client: c, log: ctrl.Log.WithName("tls-profile"), followed: &o.hub}); err != nil {
		return fmt.Errorf("cannot follow the TLS profile of the hub: %w", err)
	}
	return nil
}

// chosen reports whether a flag sets the TLS of the servers.
func (o *Options) chosen() bool {
	return o.flags != nil && (o.flags.Changed(minVersionFlag) || o.flags.Changed(cipherSuitesFlag))
}

// NeedLeaderElection returns false: each replica has its own servers.
func (f *follower) NeedLeaderElection() bool { return false }

// Start follows the profile until ctx ends. While the hub does not answer, the last known profile applies.
func (f *follower) Start(ctx context.Context) error {
	openshift := false
	_ = wait.PollUntilContextCancel(ctx, detectionInterval, true, func(context.Context) (bool, error) {
		_, err := f.mapper.RESTMapping(apiServers.GroupKind(), apiServers.Version)
		openshift = err == nil
		if err != nil && !meta.IsNoMatchError(err) {
			f.log.Error(err, "Cannot find out whether the hub has a TLS profile. The next attempt follows", "after", detectionInterval)
			return false, nil
		}
		return true, nil
	})
	if !openshift {
		return nil
	}
	_, informer := toolscache.NewInformerWithOptions(toolscache.InformerOptions{
		ListerWatcher: f.apiServers(), ObjectType: newAPIServer(),
		Handler: toolscache.ResourceEventHandlerFuncs{
			AddFunc: f.follow, UpdateFunc: func(_, obj any) { f.follow(obj) }, DeleteFunc: func(any) { f.followed.Store(nil) },
		},
	})
	informer.RunWithContext(ctx)
	return nil
}

func newAPIServer() *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(apiServers)
	return object
}

// listing lists before it watches, as the caches of the manager do.
type listing struct{ *toolscache.ListWatch }

// IsWatchListSemanticsUnSupported has the name that reflectors check: see pkg/kube.
func (listing) IsWatchListSemanticsUnSupported() bool { return true }

// apiServers lists and watches only the object that the manager may read.
func (f *follower) apiServers() toolscache.ListerWatcher {
	newList := func(o metav1.ListOptions) (*unstructured.UnstructuredList, *client.ListOptions) {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(apiServers.GroupVersion().WithKind(apiServers.Kind + "List"))
		return list, &client.ListOptions{FieldSelector: apiServerName, Raw: &o}
	}
	return listing{&toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			list, options := newList(o)
			return list, f.client.List(ctx, list, options)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			list, options := newList(o)
			return f.client.Watch(ctx, list, options)
		},
	}}
}

// follow applies the profile to all connections from now on.
func (f *follower) follow(obj any) {
	object, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return
	}
	found := &hubAPIServer{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, found); err != nil {
		f.log.Error(err, "Cannot read the TLS profile of the hub. The last known one applies")
		return
	}
	wanted := settingsOf(found)
	f.followed.Store(wanted)
	if wanted == nil {
		f.log.Info("The TLS profile of the hub is not for all components. The flags apply", "adherence", found.Spec.Adherence)
		return
	}
	f.log.Info("The servers follow the TLS profile of the hub", "adherence", found.Spec.Adherence, "profile", found.Spec.Profile.Type,
		"minVersion", tls.VersionName(wanted.minVersion))
}
