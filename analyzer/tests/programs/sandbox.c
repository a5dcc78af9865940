/* Serves: single instructions that a real processor executes. Its registers, its memory and the code
   of main are replaced from outside. */

/* Room on both sides of what operands point into, for displacements. */
unsigned char memory[5 << 16] __attribute__((aligned(4096)));

int main(void) {
    __asm__(".skip 64, 0x90");
    return memory[0];
}
