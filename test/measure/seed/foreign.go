package seed

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The foreign objects of a large hub.
const (
	foreignHosts      = 20000
	foreignAgents     = 10000
	foreignSecrets    = 5000
	foreignConfigMaps = 5000
	// foreignBytes is the size of a foreign Secret or ConfigMap.
	foreignBytes = 4096
)

// Foreign writes a share of the foreign objects of a large hub: hosts and Agents of clusters with other Machines, Secrets
// and ConfigMaps.
func (s *Seeder) Foreign(ctx context.Context, share float64) error {
	portion := func(of int) int { return int(float64(of) * share) }
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(seeders)
	const at = 10 // hosts in a transaction, because the objects of a host have up to 60 KiB
	for begin := 1; begin <= portion(foreignHosts); begin += at {
		group.Go(func() error {
			var objects []object
			for i := begin; i < begin+at && i <= portion(foreignHosts); i++ {
				more, err := foreignObjects(s.cloner, i, i <= portion(foreignAgents), i <= portion(foreignSecrets), i <= portion(foreignConfigMaps))
				if err != nil {
					return err
				}
				objects = append(objects, more...)
			}
			_, err := s.put(ctx, objects)
			return err
		})
	}
	return group.Wait()
}

// foreignObjects returns the foreign objects of one host. Their namespace does not exist, which no client reads.
func foreignObjects(c *cloner, index int, agent, secret, configMap bool) ([]object, error) {
	made := site{index: 1<<20 + index, name: fmt.Sprintf(foreignFormat, index)}
	replacer := c.replacer(made)
	var objects []object
	for _, o := range c.objects {
		if strings.Contains(o.key, "/baremetalhosts/") || agent && strings.Contains(o.key, "/agents/") {
			objects = append(objects, object{key: replacer.Replace(o.key), json: replacer.Replace(o.json)})
		}
	}
	metadata := metav1.ObjectMeta{Namespace: made.name, Name: "foreign", UID: types.UID(uuid.NewString()), CreationTimestamp: metav1.Now()}
	filling := strings.Repeat("x", foreignBytes)
	if secret {
		content, err := json.Marshal(&corev1.Secret{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: metadata, Type: corev1.SecretTypeOpaque,
			Data: map[string][]byte{"x": []byte(filling)},
		})
		if err != nil {
			return nil, err
		}
		objects = append(objects, object{key: "/secrets/" + made.name + "/foreign", json: string(content)})
	}
	if configMap {
		content, err := json.Marshal(&corev1.ConfigMap{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metadata, Data: map[string]string{"x": filling},
		})
		if err != nil {
			return nil, err
		}
		objects = append(objects, object{key: "/configmaps/" + made.name + "/foreign", json: string(content)})
	}
	return objects, nil
}
