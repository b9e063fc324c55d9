// Command floor shows what a manager of this repository costs at least. It is a manager of controller-runtime that
// watches the same kinds with the same types, and does nothing. The bench runs it together with the managers.
//
//	floor -kinds=bootstrap|controlplane -health=127.0.0.1:8081
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"sync/atomic"

	hiveext "github.com/openshift/assisted-service/api/hiveextension/v1beta1"
	hivev1 "github.com/openshift/hive/apis/hive/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	aiv1beta1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/assisted/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/metal3"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/program"
)

// watched returns the kinds that a manager watches during an installation.
func watched(manager string) ([]client.Object, error) {
	both := []client.Object{
		&clusterv1.Cluster{}, &clusterv1.Machine{}, &bootstrapv1.OpenshiftAssistedConfig{}, &aiv1beta1.Agent{},
		&hivev1.ClusterDeployment{}, &hiveext.AgentClusterInstall{}, metal3Kind("Metal3Machine"),
		metadataOf(corev1.SchemeGroupVersion.WithKind("Secret")), metadataOf(corev1.SchemeGroupVersion.WithKind("ConfigMap")),
		metadataOf(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}),
	}
	switch manager {
	case "bootstrap":
		return append(both, &aiv1beta1.InfraEnv{}, &aiv1beta1.NMStateConfig{}, &metal3.Host{}), nil
	case "controlplane":
		return append(both, &controlplanev1.OpenshiftAssistedControlPlane{}, &clusterv1.MachineDeployment{}, &clusterv1.MachineSet{},
			&clusterv1.MachineDrainRule{}, &hivev1.ClusterImageSet{}, metal3Kind("Metal3MachineTemplate")), nil
	}
	return nil, fmt.Errorf("unknown manager %q", manager)
}

// metal3Kind returns an object of a kind of CAPM3, of which the managers have no type.
func metal3Kind(kind string) client.Object {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(schema.GroupVersionKind{Group: clusterv1.GroupVersionInfrastructure.Group, Version: "v1beta2", Kind: kind})
	return object
}

// metadataOf returns an object to watch only the metadata of a kind.
func metadataOf(kind schema.GroupVersionKind) client.Object {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(kind)
	return object
}

func main() {
	kinds := flag.String("kinds", "bootstrap", "manager whose kinds are watched: bootstrap or controlplane")
	health := flag.String("health", "127.0.0.1:8081", "address that serves /readyz")
	flag.Parse()
	program.Main(func(ctx context.Context) error { return run(ctx, *kinds, *health) })
}

func run(ctx context.Context, kinds, health string) error {
	ctrl.SetLogger(klog.Background())
	objects, err := watched(kinds)
	if err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	builder := runtime.NewSchemeBuilder(clientgoscheme.AddToScheme, clusterv1.AddToScheme, bootstrapv1.AddToScheme, controlplanev1.AddToScheme,
		aiv1beta1.AddToScheme, hiveext.AddToScheme, hivev1.AddToScheme, metal3.AddToScheme)
	if err := builder.AddToScheme(scheme); err != nil {
		return fmt.Errorf("cannot build the scheme: %w", err)
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("cannot find the API server: %w", err)
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme, HealthProbeBindAddress: health, Metrics: metricsserver.Options{BindAddress: "0"},
	})
	if err != nil {
		return fmt.Errorf("cannot set up the manager: %w", err)
	}
	if err := addReadiness(mgr); err != nil {
		return fmt.Errorf("cannot add the readiness check: %w", err)
	}
	for _, object := range objects {
		if _, err := mgr.GetCache().GetInformer(ctx, object, cache.BlockUntilSynced(false)); err != nil {
			return fmt.Errorf("cannot watch %T: %w", object, err)
		}
	}
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("the manager failed: %w", err)
	}
	return nil
}

// addReadiness makes the manager ready when its caches are filled.
func addReadiness(mgr manager.Manager) error {
	var filled atomic.Bool
	check := func(*http.Request) error {
		if !filled.Load() {
			return errors.New("the caches are not filled")
		}
		return nil
	}
	return errors.Join(mgr.AddReadyzCheck("filled", check), mgr.Add(manager.RunnableFunc(func(context.Context) error {
		filled.Store(true)
		return nil
	})))
}
