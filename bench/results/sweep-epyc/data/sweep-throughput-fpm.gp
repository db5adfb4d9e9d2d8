set encoding utf8
set terminal pngcairo noenhanced size 1200,720
set output 'sweep-throughput-fpm.png'
set title 'nginx + php-fpm: Throughput over concurrency'
set xlabel 'concurrency'
set ylabel 'throughput (requests/s)'
set xrange [0:*]
set yrange [0:*]
set grid
set samples 200
set key above
plot 'sweep-throughput-fpm-fpm.dat' using 1:2 with points pointtype 2 linecolor rgb '#d1001f' title 'nginx + php-fpm', \
     'sweep-throughput-fpm-fpm.dat' using 1:2 smooth bezier with lines linewidth 2 linecolor rgb '#d1001f' notitle
