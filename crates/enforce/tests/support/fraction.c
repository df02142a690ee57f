// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
// Prints the results of bpf/fraction.h, one line for each line of standard input.

#include <inttypes.h>
#include <stdio.h>

typedef uint32_t __u32;
typedef uint64_t __u64;

#include "../../../../bpf/fraction.h"

int main(void)
{
	uint64_t a, b, c, d;
	char what;

	while (scanf(" %c %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64, &what, &a, &b, &c, &d) == 5) {
		if (what == 'a')
			printf("%" PRIu32 "\n", next_alpha(a, b, c, d));
		else if (what == 'w')
			printf("%" PRIu32 "\n", reduced(a, b, c));
		else if (what == 'p')
			printf("%" PRIu32 "\n", power(a, b));
		else if (what == 'i')
			printf("%" PRIu32 "\n", imminence(a, b, c, d));
	}
	return 0;
}
