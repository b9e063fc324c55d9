package scale

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/bootstrap/api/v1beta1"
	controlplanev1 "github.com/openshift-agent/cluster-api-provider-openshift-agent/controlplane/api/v1beta1"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/measure/results"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/measure/seed"
)

// The timed reactions: the time from a write until the following write of a manager is seen.
const (
	labelPropagated    = "label of machineTemplate -> Machine"
	pauseAcknowledged  = "config paused -> condition Paused"
	sampleLabel        = "scale.example.com/sample"
	referenceConfigMap = "scale-reference"
	// reactionTimeout is the time limit of a reaction.
	reactionTimeout = time.Minute
)

// reactionNames are in the order of the tables.
var reactionNames = []string{labelPropagated, pauseAcknowledged}

// react changes one cluster after the other, and returns the reaction times.
func (s *scale) react(ctx context.Context) (map[string]results.Quantiles, error) {
	hub, err := client.NewWithWatch(s.lab.Env.Config(), client.Options{Scheme: s.lab.Env.Scheme()})
	if err != nil {
		return nil, fmt.Errorf("cannot watch the hub: %w", err)
	}
	reference := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: referenceConfigMap}}
	if err := hub.Create(ctx, reference); err != nil {
		return nil, fmt.Errorf("cannot create ConfigMap %s: %w", referenceConfigMap, err)
	}
	alive := s.alive()
	times := map[string][]time.Duration{}
	for i := range s.reactions {
		one := changes{hub: hub, cluster: seed.Name(alive[i%len(alive)]), value: strconv.Itoa(i)}
		for reaction, act := range map[string]func(context.Context) (time.Duration, error){
			results.Reference: one.plain,
			labelPropagated:   one.label, pauseAcknowledged: one.pause,
		} {
			took, err := act(ctx)
			if err != nil {
				return nil, fmt.Errorf("%s, %s: %w", reaction, one.cluster, err)
			}
			times[reaction] = append(times[reaction], took)
		}
	}
	result := map[string]results.Quantiles{}
	for reaction, took := range times {
		result[reaction] = results.QuantilesOf(took)
	}
	return result, nil
}

// changes are the timed changes of one cluster. The value differs in each sample.
type changes struct {
	hub            client.WithWatch
	cluster, value string
}

func (c changes) plain(ctx context.Context) (time.Duration, error) {
	reference := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: referenceConfigMap}}
	return timed(ctx, c.hub, &corev1.ConfigMapList{}, reference, fmt.Sprintf(`{"data":{"sample":%q}}`, c.value),
		func(o *corev1.ConfigMap) bool { return o.Data["sample"] == c.value })
}

func (c changes) label(ctx context.Context) (time.Duration, error) {
	controlPlane := &controlplanev1.OpenshiftAssistedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: c.cluster, Name: c.cluster}}
	return timed(ctx, c.hub, &clusterv1.MachineList{}, controlPlane,
		fmt.Sprintf(`{"spec":{"machineTemplate":{"metadata":{"labels":{%q:%q}}}}}`, sampleLabel, c.value),
		func(o *clusterv1.Machine) bool { return o.Labels[sampleLabel] == c.value })
}

// pause pauses a config, times the acknowledgement, and ends the pause.
func (c changes) pause(ctx context.Context) (time.Duration, error) {
	configs := &bootstrapv1.OpenshiftAssistedConfigList{}
	if err := c.hub.List(ctx, configs, client.InNamespace(c.cluster)); err != nil || len(configs.Items) == 0 {
		return 0, errors.Join(errors.New("cannot find the config"), err)
	}
	config := &configs.Items[0]
	took, err := timed(ctx, c.hub, configs, config, fmt.Sprintf(`{"metadata":{"annotations":{%q:""}}}`, clusterv1.PausedAnnotation),
		func(o *bootstrapv1.OpenshiftAssistedConfig) bool {
			return meta.IsStatusConditionTrue(o.Status.Conditions, clusterv1.PausedCondition)
		})
	if err != nil {
		return 0, err
	}
	resume := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:null}}}`, clusterv1.PausedAnnotation)
	if err := c.hub.Patch(ctx, config, client.RawPatch(types.MergePatchType, resume)); err != nil {
		return 0, fmt.Errorf("cannot end the pause of the config: %w", err)
	}
	return took, nil
}

// alive returns clusters that answer and that the measured managers reconcile, spread over the hub.
func (s *scale) alive() []int {
	var found []int
	for i := 1; i <= s.Clusters; i++ {
		if s.seeder.Answers(i) && s.filterOf(i) == s.filterOf(0) {
			found = append(found, i)
		}
	}
	stride := max(1, len(found)/max(1, s.reactions))
	var spread []int
	for i := 0; i < len(found); i += stride {
		spread = append(spread, found[i])
	}
	return spread
}

// timed patches an object, and returns the time until a watched object of its namespace is as wanted.
func timed[T client.Object](ctx context.Context, hub client.WithWatch, list client.ObjectList, obj client.Object,
	patch string, wanted func(T) bool,
) (time.Duration, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, reactionTimeout, fmt.Errorf("not within %s", reactionTimeout))
	defer cancel()
	watched, err := hub.Watch(ctx, list, client.InNamespace(obj.GetNamespace()))
	if err != nil {
		return 0, fmt.Errorf("cannot watch: %w", err)
	}
	defer watched.Stop()
	begin := time.Now()
	if err := hub.Patch(ctx, obj, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		return 0, fmt.Errorf("cannot write: %w", err)
	}
	for {
		select {
		case event, open := <-watched.ResultChan():
			if !open {
				return 0, errors.New("the watch ended")
			}
			seen, ok := event.Object.(T)
			if ok && slices.Contains([]watch.EventType{watch.Added, watch.Modified}, event.Type) && wanted(seen) {
				return time.Since(begin), nil
			}
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
}
