package seed

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/util/retry"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/hosts"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/lab"
)

const (
	// TemplateName is the namespace and the name of the installed cluster.
	TemplateName = "site-00000"
	// installTimeout is generous. An installation takes half a minute on two idle processors.
	installTimeout = 10 * time.Minute
)

// protobuf is the prefix of stored objects of Kubernetes. Custom resources are JSON.
var protobuf = []byte("k8s\x00")

// object is an object in etcd: its key without the prefix of the API server, and its JSON.
type object struct{ key, json string }

// Install installs the cluster that is cloned.
func Install(ctx context.Context, l *lab.Lab, sample string) (*lab.Cluster, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, installTimeout, fmt.Errorf("not within %s", installTimeout))
	defer cancel()
	cluster, err := l.ApplySample(ctx, sample, lab.Mutations{
		Namespace: TemplateName, ClusterName: TemplateName,
		// All clusters share the Nodes, whose names match the Machines. So the names contain no cluster.
		HostOptions: []hosts.HostOption{hosts.WithName("host")},
	})
	if err != nil {
		return nil, err
	}
	if err := cluster.WaitAvailable(ctx); err != nil {
		return nil, err
	}
	return cluster, reportMembers(ctx, l.Client())
}

// reportMembers sets the condition of control-plane Machines whose etcd members the control plane provider has read. The
// simulated cluster has no members. Without the condition each start would try to read them, unlike with real clusters.
func reportMembers(ctx context.Context, c client.Client) error {
	machines := &clusterv1.MachineList{}
	if err := c.List(ctx, machines, client.InNamespace(TemplateName), client.HasLabels{clusterv1.MachineControlPlaneLabel}); err != nil {
		return fmt.Errorf("cannot list the control-plane Machines: %w", err)
	}
	for i := range machines.Items {
		m := &machines.Items[i]
		err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
			if err := c.Get(ctx, client.ObjectKeyFromObject(m), m); err != nil {
				return err //nolint:wrapcheck // below
			}
			conditions.Set(m, metav1.Condition{
				Type: controlplanev1.EtcdMemberHealthyCondition, Status: metav1.ConditionTrue,
				Reason: controlplanev1.EtcdMemberHealthyReason, ObservedGeneration: m.Generation,
			})
			return c.Status().Update(ctx, m) //nolint:wrapcheck // below
		})
		if err != nil {
			return fmt.Errorf("cannot report the etcd member of Machine %s: %w", m.Name, err)
		}
	}
	return nil
}

// readTemplate reads all objects of the installed cluster from etcd.
func readTemplate(ctx context.Context, store *etcd, prefix string) ([]object, error) {
	pairs, err := store.list(ctx, prefix+"/")
	if err != nil {
		return nil, err
	}
	var objects []object
	for _, p := range pairs {
		o := object{key: strings.TrimPrefix(string(p.Key), prefix)}
		if !belongs(o.key, p.Value) {
			continue
		}
		if o.json, err = toJSON(p.Value); err != nil {
			return nil, fmt.Errorf("cannot read %s: %w", o.key, err)
		}
		objects = append(objects, o)
	}
	if len(objects) == 0 {
		return nil, errors.New("etcd has no object of the installed cluster")
	}
	return objects, nil
}

// belongs reports whether an object belongs to the installed cluster and lasts.
func belongs(key string, value []byte) bool {
	for _, transient := range []string{"/events/", "/leases/"} {
		if strings.HasPrefix(key, transient) {
			return false
		}
	}
	inNamespace := strings.Contains(key+"/", "/"+TemplateName+"/")
	return inNamespace || strings.Contains(key, "/clusterimagesets/") && bytes.Contains(value, []byte(TemplateName))
}

// toJSON returns a stored object as JSON.
func toJSON(value []byte) (string, error) {
	if !bytes.HasPrefix(value, protobuf) {
		return string(value), nil
	}
	decoded, kind, err := serializer.NewCodecFactory(clientgoscheme.Scheme).UniversalDeserializer().Decode(value, nil, nil)
	if err != nil {
		return "", err
	}
	decoded.GetObjectKind().SetGroupVersionKind(*kind)
	content, err := json.Marshal(decoded)
	return string(content), err
}

// toSecret decodes a Secret. It returns nil for other kinds.
func toSecret(o object) (*corev1.Secret, error) {
	if !strings.HasPrefix(o.key, "/secrets/") {
		return nil, nil //nolint:nilnil // no Secret
	}
	found := &corev1.Secret{}
	if err := json.Unmarshal([]byte(o.json), found); err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", o.key, err)
	}
	return found, nil
}
