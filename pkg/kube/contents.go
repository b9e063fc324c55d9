package kube

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/pkg/lru"
)

// rememberedContents is the number of objects of a kind whose contents are kept.
const rememberedContents = 512

// Contents remembers what was read in Secrets or ConfigMaps, of which only metadata is cached: each of their versions is read once.
type Contents[T any] struct {
	known *lru.Cache[client.ObjectKey, ofVersion[T]]
}

type ofVersion[T any] struct {
	version string
	content T
}

// NewContents returns Contents that remember nothing.
func NewContents[T any]() Contents[T] {
	return Contents[T]{known: lru.New[client.ObjectKey, ofVersion[T]](rememberedContents)}
}

// Of returns what was read in this version of an object, or reads it.
func (c Contents[T]) Of(metadata *metav1.PartialObjectMetadata, read func(client.ObjectKey) (T, error)) (T, error) {
	key := client.ObjectKeyFromObject(metadata)
	if last, ok := c.known.Get(key); ok && last.version == metadata.ResourceVersion {
		return last.content, nil
	}
	content, err := read(key)
	if err == nil {
		c.known.Add(key, ofVersion[T]{metadata.ResourceVersion, content})
	}
	return content, err
}
