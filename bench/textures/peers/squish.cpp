// A command line for libsquish: raw RGBA to blocks of BC1 or BC3, and back.
//
//	squish encode range|cluster bc1|bc3 WIDTH HEIGHT < rgba > blocks      the seconds that it took, wall and CPU, go to stderr
//	squish decode bc1|bc3 WIDTH HEIGHT < blocks > rgba
//
//	g++ -O2 -o squish squish.cpp -lsquish
#include <squish.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <vector>

static int format(const char *name) { return strcmp(name, "bc3") == 0 ? squish::kDxt5 : squish::kDxt1; }

static bool read(std::vector<squish::u8> &b) { return fread(b.data(), 1, b.size(), stdin) == b.size(); }

static bool write(const std::vector<squish::u8> &b) { return fwrite(b.data(), 1, b.size(), stdout) == b.size(); }

int main(int argc, char **argv) {
	bool encode = argc == 6 && strcmp(argv[1], "encode") == 0;
	if (!encode && !(argc == 5 && strcmp(argv[1], "decode") == 0)) return 2;
	int flags = format(argv[argc - 3]), width = atoi(argv[argc - 2]), height = atoi(argv[argc - 1]);
	std::vector<squish::u8> rgba(4 * size_t(width) * height), blocks(squish::GetStorageRequirements(width, height, flags));
	if (!encode) {
		if (!read(blocks)) return 1;
		squish::DecompressImage(rgba.data(), width, height, blocks.data(), flags);
		return write(rgba) ? 0 : 1;
	}
	flags |= strcmp(argv[2], "cluster") == 0 ? squish::kColourClusterFit : squish::kColourRangeFit;
	if (!read(rgba)) return 1;
	auto start = std::chrono::steady_clock::now();
	clock_t cpu = clock();
	squish::CompressImage(rgba.data(), width, height, blocks.data(), flags);
	std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;
	fprintf(stderr, "%f %f\n", wall.count(), double(clock() - cpu) / CLOCKS_PER_SEC);
	return write(blocks) ? 0 : 1;
}
