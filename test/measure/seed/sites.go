package seed

import (
	"context"
	"fmt"
	"net"
	"sync"

	configv1 "github.com/openshift/api/config/v1"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env"
)

// The objects of an OpenShift cluster that an installation in the laboratory does not create.
const (
	workloadCRDs      = 150
	kindsInGroup      = 5
	workloadOperators = 34
	// relatedObjects and nodeImages are the numbers of entries in a ClusterOperator and a Node, which dominate their size.
	relatedObjects, nodeImages = 12, 50
	// workloadWriters is the number of concurrent writes.
	workloadWriters = 8
)

// fill restarts the API server of the installed cluster on all loopback addresses, with an audit log. It creates the
// objects of an OpenShift cluster, and returns the path of the log.
func fill(ctx context.Context, w *env.WorkloadCluster) (auditLog string, err error) {
	if auditLog, err = w.Audit(); err != nil {
		return "", err
	}
	w.Args = append(w.Args, "--bind-address=0.0.0.0")
	w.Stop()
	if err := w.Start(ctx); err != nil {
		return "", err
	}
	c, err := w.Client()
	if err != nil {
		return "", err
	}
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(workloadWriters)
	for i := range workloadCRDs {
		group.Go(func() error { return create(groupCtx, c, definition(i)) })
	}
	for i := range workloadOperators {
		group.Go(func() error { return createOperator(groupCtx, c, i) })
	}
	if err := group.Wait(); err != nil {
		return "", err
	}
	return auditLog, addImages(ctx, c)
}

func create(ctx context.Context, c client.Client, obj client.Object) error {
	if err := c.Create(ctx, obj); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("cannot create %T %s: %w", obj, obj.GetName(), err)
	}
	return nil
}

// definition returns one of the many kinds of an OpenShift cluster.
func definition(i int) *apiextensionsv1.CustomResourceDefinition {
	group, plural := fmt.Sprintf("group%02d.openshift.io", i/kindsInGroup), fmt.Sprintf("examplekind%03ds", i)
	kind := fmt.Sprintf("ExampleKind%03d", i)
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: plural + "." + group}}
	crd.Spec = apiextensionsv1.CustomResourceDefinitionSpec{
		Group: group, Scope: apiextensionsv1.ClusterScoped,
		Names: apiextensionsv1.CustomResourceDefinitionNames{
			Plural: plural, Singular: plural[:len(plural)-1], Kind: kind, ListKind: kind + "List",
			ShortNames: []string{fmt.Sprintf("ek%03d", i)}, Categories: []string{"all"},
		},
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
			Name: "v1", Served: true, Storage: true,
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
				Type:                   "object",
				XPreserveUnknownFields: ptr.To(true),
			}},
			Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
		}},
	}
	return crd
}

// createOperator creates a ClusterOperator of realistic size.
func createOperator(ctx context.Context, c client.Client, i int) error {
	operator := &configv1.ClusterOperator{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("example-operator-%02d", i)}}
	if err := create(ctx, c, operator); err != nil {
		return err
	}
	now := metav1.Now()
	for _, kind := range []configv1.ClusterStatusConditionType{
		configv1.OperatorAvailable, configv1.OperatorProgressing, configv1.OperatorDegraded, configv1.OperatorUpgradeable,
		configv1.EvaluationConditionsDetected,
	} {
		status := configv1.ConditionFalse
		if kind == configv1.OperatorAvailable || kind == configv1.OperatorUpgradeable {
			status = configv1.ConditionTrue
		}
		operator.Status.Conditions = append(operator.Status.Conditions, configv1.ClusterOperatorStatusCondition{
			Type: kind, Status: status, Reason: "AsExpected", LastTransitionTime: now,
			Message: "All of the operands of this example are as they are expected to be",
		})
	}
	for i := range relatedObjects {
		operator.Status.RelatedObjects = append(operator.Status.RelatedObjects, configv1.ObjectReference{
			Group: "operator.openshift.io", Resource: "exampleoperands", Namespace: "openshift-example-operator", Name: fmt.Sprintf("operand-%d", i),
		})
	}
	operator.Status.Versions = []configv1.OperandVersion{{Name: "operator", Version: "4.19.10"}, {Name: "operand", Version: "4.19.10"}}
	if err := c.Status().Update(ctx, operator); err != nil {
		return fmt.Errorf("cannot write the status of ClusterOperator %s: %w", operator.Name, err)
	}
	return nil
}

// addImages adds images to the Nodes.
func addImages(ctx context.Context, c client.Client) error {
	nodes := &corev1.NodeList{}
	if err := c.List(ctx, nodes); err != nil {
		return fmt.Errorf("cannot list the Nodes: %w", err)
	}
	for i := range nodes.Items {
		node := &nodes.Items[i]
		before := client.MergeFrom(node.DeepCopy())
		for k := range nodeImages {
			node.Status.Images = append(node.Status.Images, corev1.ContainerImage{
				Names: []string{
					fmt.Sprintf("quay.io/openshift-release-dev/ocp-v4.0-art-dev@sha256:%064x", k),
					fmt.Sprintf("quay.io/openshift-release-dev/ocp-v4.0-art-dev:%d", k),
				},
				SizeBytes: 1 << 29,
			})
		}
		if err := c.Status().Patch(ctx, node, before); err != nil {
			return fmt.Errorf("cannot write the images of Node %s: %w", node.Name, err)
		}
	}
	return nil
}

// shared returns the strings by which objects on the hub refer to objects of the cluster that serves all clones.
func shared(ctx context.Context, c client.Client) ([]string, error) {
	nodes := &corev1.NodeList{}
	if err := c.List(ctx, nodes); err != nil {
		return nil, fmt.Errorf("cannot list the Nodes: %w", err)
	}
	version := &configv1.ClusterVersion{}
	if err := c.Get(ctx, client.ObjectKey{Name: "version"}, version); err != nil {
		return nil, fmt.Errorf("cannot read the ClusterVersion: %w", err)
	}
	tokens := &corev1.SecretList{}
	if err := c.List(ctx, tokens, client.InNamespace(metav1.NamespaceSystem)); err != nil {
		return nil, fmt.Errorf("cannot list the Secrets of tokens: %w", err)
	}
	found := []string{string(version.Spec.ClusterID)}
	for _, node := range nodes.Items {
		found = append(found, string(node.UID))
		if node.Spec.ProviderID != "" {
			found = append(found, node.Spec.ProviderID)
		}
	}
	for _, token := range tokens.Items {
		found = append(found, string(token.UID))
	}
	return found, nil
}

// startDead creates the two ports that never answer. The first one accepts connections until ctx ends.
func startDead(ctx context.Context, a *access, reserve func() (int, error)) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "0.0.0.0:0")
	if err != nil {
		return fmt.Errorf("cannot listen for clusters that do not answer: %w", err)
	}
	var held sync.Map
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return // closed
			}
			held.Store(connection, true) // a collected connection would be closed
		}
	}()
	context.AfterFunc(ctx, func() {
		listener.Close()
		held.Range(func(connection, _ any) bool { connection.(net.Conn).Close(); return true }) //nolint:forcetypeassert // nothing else is stored
	})
	a.silent = listener.Addr().(*net.TCPAddr).Port //nolint:forcetypeassert // it listens on TCP
	a.refusing, err = reserve()
	return err
}
