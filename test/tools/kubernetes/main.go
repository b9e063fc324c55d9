// Command kube-controllers runs the controllers of Kubernetes that Cluster API relies on. They are garbage collection,
// deletion of namespaces, ServiceAccounts and their tokens, and aggregation of ClusterRoles. The aggregation gives core
// its rights on the kinds of providers. The controllers have the settings of kube-controller-manager, and each acts as
// its own ServiceAccount. kube-controller-manager contains all other controllers and code for clouds and volumes. After
// kube-apiserver, its build takes many times as long.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/controller-manager/pkg/clientbuilder"
	"k8s.io/controller-manager/pkg/informerfactory"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/clusterroleaggregation"
	"k8s.io/kubernetes/pkg/controller/garbagecollector"
	"k8s.io/kubernetes/pkg/controller/namespace"
	serviceaccounts "k8s.io/kubernetes/pkg/controller/serviceaccount"
	"k8s.io/kubernetes/pkg/serviceaccount"
)

// The defaults of the flags of kube-controller-manager.
const (
	collectors, namespaceWorkers, tokenWorkers, roleWorkers = 20, 10, 5, 5

	resync, namespaceResync = 12 * time.Hour, 5 * time.Minute
	// newKinds is the interval at which it searches for new kinds.
	newKinds = 30 * time.Second
)

// settings are the flags.
type settings struct {
	kubeconfig, key, health string
}

func main() {
	s := settings{}
	flag.StringVar(&s.kubeconfig, "kubeconfig", "", "Kubeconfig of system:kube-controller-manager.")
	flag.StringVar(&s.key, "service-account-private-key-file", "", "File with the key that signs the tokens of ServiceAccounts.")
	flag.StringVar(&s.health, "health-addr", "127.0.0.1:0", "Address of the health endpoint, which answers when all controllers run.")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := s.run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run starts the controllers, and returns when the context ends; what they were at they find again.
func (s settings) run(ctx context.Context) error {
	c, err := s.connect()
	if err != nil {
		return err
	}
	for name, prepare := range map[string]func(context.Context) (func(), error){
		"garbage collector":           c.garbageCollector,
		"controller of namespaces":    c.namespaces,
		"controller of accounts":      c.serviceAccounts,
		"controller of tokens":        c.tokens,
		"aggregation of ClusterRoles": c.clusterRoles,
	} {
		run, err := prepare(ctx)
		if err != nil {
			return fmt.Errorf("cannot set up the %s: %w", name, err)
		}
		go run() // each waits for its informers
	}
	c.all.Start(ctx.Done())
	close(c.started)
	return serveHealth(ctx, s.health)
}

// serveHealth answers everything with 200 until the context ends.
func serveHealth(ctx context.Context, address string) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("cannot serve the health endpoint: %w", err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), ReadHeaderTimeout: time.Minute}
	context.AfterFunc(ctx, func() { server.Close() })
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("cannot serve the health endpoint: %w", err)
	}
	return nil
}

// connection is what the controllers have in common.
type connection struct {
	root *rest.Config
	// key is the file with the key of ServiceAccounts.
	key string
	// client and metadata are those of the informers, accounts makes those by which a controller acts.
	client   kubernetes.Interface
	metadata metadata.Interface
	accounts clientbuilder.ControllerClientBuilder
	// informers are by type; all are these, and by metadata those of any other kind.
	informers informers.SharedInformerFactory
	all       informerfactory.InformerFactory
	started   chan struct{}
}

func (s settings) connect() (*connection, error) {
	config, err := clientcmd.BuildConfigFromFlags("", s.kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = 200, 400
	config.ContentType, config.DisableCompression = runtime.ContentTypeProtobuf, true
	c := &connection{root: rest.AddUserAgent(config, "kube-controllers"), key: s.key, started: make(chan struct{})}
	if c.client, err = kubernetes.NewForConfig(c.root); err != nil {
		return nil, err
	}
	if c.metadata, err = metadata.NewForConfig(c.root); err != nil {
		return nil, err
	}
	c.accounts = clientbuilder.NewDynamicClientBuilder(rest.AnonymousClientConfig(config), c.client.CoreV1(), metav1.NamespaceSystem)
	c.informers = informers.NewSharedInformerFactoryWithOptions(c.client, resync, informers.WithTransform(trim))
	c.all = informerfactory.NewInformerFactory(c.informers,
		metadatainformer.NewSharedInformerFactoryWithOptions(c.metadata, resync, metadatainformer.WithTransform(trim)))
	return c, nil
}

// trim takes from what is remembered the managed fields, which no controller reads.
func trim(object any) (any, error) {
	if o, ok := object.(metav1.Object); ok {
		o.SetManagedFields(nil)
	}
	return object, nil
}

func (c *connection) garbageCollector(ctx context.Context) (func(), error) {
	const account = "generic-garbage-collector"
	client, err := c.accounts.Client(account)
	if err != nil {
		return nil, err
	}
	kinds, err := c.accounts.DiscoveryClient(account)
	if err != nil {
		return nil, err
	}
	config, err := c.accounts.Config(account)
	if err != nil {
		return nil, err
	}
	config.QPS *= 2 // it reads an object before it deletes it
	objects, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(c.client.Discovery()))
	gc, err := garbagecollector.NewComposedGarbageCollector(ctx, client, objects, mapper,
		garbagecollector.NewDependencyGraphBuilder(ctx, c.metadata, mapper, garbagecollector.DefaultIgnoredResources(), c.all, c.started))
	return func() {
		go wait.UntilWithContext(ctx, func(context.Context) { mapper.Reset() }, newKinds)
		go gc.Sync(ctx, kinds, newKinds)
		gc.Run(ctx, collectors, newKinds)
	}, err
}

func (c *connection) namespaces(ctx context.Context) (func(), error) {
	config, err := c.accounts.Config("namespace-controller")
	if err != nil {
		return nil, err
	}
	// To empty a namespace it goes through all kinds that there are.
	config.QPS *= 20
	config.Burst *= 100
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	objects, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	controller := namespace.NewNamespaceController(ctx, client, objects, client.Discovery().ServerPreferredNamespacedResources,
		c.informers.Core().V1().Namespaces(), namespaceResync, corev1.FinalizerKubernetes)
	return func() { controller.Run(ctx, namespaceWorkers) }, nil
}

func (c *connection) serviceAccounts(ctx context.Context) (func(), error) {
	client, err := c.accounts.Client("service-account-controller")
	if err != nil {
		return nil, err
	}
	core := c.informers.Core().V1()
	controller, err := serviceaccounts.NewServiceAccountsController(klog.FromContext(ctx), core.ServiceAccounts(), core.Namespaces(), client,
		serviceaccounts.DefaultServiceAccountsControllerOptions())
	return func() { controller.Run(ctx, 1) }, err
}

// tokens act by the kubeconfig itself: without them no other ServiceAccount would have any.
func (c *connection) tokens(ctx context.Context) (func(), error) {
	key, err := keyutil.PrivateKeyFromFile(c.key)
	if err != nil {
		return nil, err
	}
	generator, err := serviceaccount.JWTTokenGenerator(serviceaccount.LegacyIssuer, key)
	if err != nil {
		return nil, err
	}
	core := c.informers.Core().V1()
	controller, err := serviceaccounts.NewTokensController(klog.FromContext(ctx), core.ServiceAccounts(), core.Secrets(), c.client,
		serviceaccounts.TokensControllerOptions{TokenGenerator: generator, RootCA: c.root.CAData})
	return func() { controller.Run(ctx, tokenWorkers) }, err
}

func (c *connection) clusterRoles(ctx context.Context) (func(), error) {
	client, err := c.accounts.Client("clusterrole-aggregation-controller")
	if err != nil {
		return nil, err
	}
	controller := clusterroleaggregation.NewClusterRoleAggregation(c.informers.Rbac().V1().ClusterRoles(), client.RbacV1())
	return func() { controller.Run(ctx, roleWorkers) }, nil
}
