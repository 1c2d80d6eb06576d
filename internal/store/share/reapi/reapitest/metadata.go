package reapitest

import (
	"context"

	"google.golang.org/grpc/metadata"
)

func metadataOf(ctx context.Context, name string) []string {
	return metadata.ValueFromIncomingContext(ctx, name)
}
